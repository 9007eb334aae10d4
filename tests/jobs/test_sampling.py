"""Training rows: labels and the uniform sample."""

import numpy as np
import pyarrow as pa
import pytest

from ptad.errors import DataError, SettingError
from ptad.jobs.labels import equals, is_anomaly
from ptad.jobs.sampling import Reservoir, training_rows
from ptad.tables import write_table


def batches(n, size):
    table = pa.table({"i": np.arange(n)})
    return table.schema, table.to_batches(max_chunksize=size)


def drawn(n, size, cap, seed):
    schema, parts = batches(n, size)
    reservoir = Reservoir(cap, seed)
    for part in parts:
        reservoir.add(part, part["i"].to_numpy())
    table, numbers = reservoir.rows(schema)
    assert np.array_equal(numbers, table["i"])  # every row knows where it came from
    return table["i"].to_numpy()


def test_sample_is_uniform_sorted_and_without_repeats():
    counts = np.zeros(60)
    for seed in range(600):
        found = drawn(60, 7, 10, seed)
        assert len(found) == 10 and (np.diff(found) > 0).all()
        counts[found] += 1
    # each row is drawn 100 times on average, with a standard deviation of 9.1; the bounds are 4.5 of them
    assert counts.min() > 59 and counts.max() < 141
    assert abs(counts[:30].sum() - 3000) < 180  # early rows have no advantage


def test_small_tables_are_taken_whole():
    assert drawn(60, 7, 60, 0).tolist() == list(range(60)) == drawn(60, 7, 1000, 0).tolist()


def test_same_seed_same_sample():
    assert drawn(500, 50, 20, 3).tolist() == drawn(500, 50, 20, 3).tolist() != drawn(500, 50, 20, 4).tolist()


def test_normal_rows_only(tmp_path, caplog):
    write_table(pa.table({"a": range(10), "y": ["ok", "bad"] * 5}), tmp_path / "t.csv")
    sample = training_rows(tmp_path / "t.csv", label="y", normal=["ok"])
    assert sample.table["a"].to_pylist() == [0, 2, 4, 6, 8]
    assert (sample.rows_read, sample.rows_normal, sample.is_partial) == (10, 5, False)
    part = training_rows(tmp_path / "t.csv", label="y", normal=["ok", "bad"], max_rows=4)
    assert part.table.num_rows == 4 and part.is_partial and "sample of 4 of 10 rows" in caplog.text
    with pytest.raises(DataError, match=r"'y' is 'fine'.*values are: 'ok', 'bad'\. Name one of them with normal="):
        training_rows(tmp_path / "t.csv", label="y", normal=["fine"])


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        ([0, 1, None], ["0"], [True, False, False]),
        ([0.0, 1.0, 2.5], ["1", "2.50"], [False, True, True]),
        ([True, False, None], ["TRUE"], [True, False, False]),
        ([True, False, None], ["0"], [False, True, False]),
        (["a ", "b", None], ["a"], [True, False, False]),
        (["1", "01", "1.0"], ["1"], [True, False, False]),
        ([1, 2, 3], ["one"], [False, False, False]),
        ([None, None, None], ["a"], [False, False, False]),
    ],
)
def test_label_values(values, wanted, expected):
    assert equals(pa.array(values), wanted).tolist() == expected
    assert equals(pa.array(values).dictionary_encode(), wanted).tolist() == expected


def test_anomalies_by_label():
    assert is_anomaly(pa.array([0, 1]), (), (), "y").tolist() == [False, True]
    assert is_anomaly(pa.array([True, False]), (), (), "y").tolist() == [True, False]
    assert is_anomaly(pa.array(["a", "b", "c"]), ["a"], (), "y").tolist() == [False, True, True]
    assert is_anomaly(pa.array(["a", "b", "c"]), (), ["a"], "y").tolist() == [True, False, False]
    with pytest.raises(SettingError, match="Say which one is normal with normal="):
        is_anomaly(pa.array([1, 2]), (), (), "y")
    with pytest.raises(DataError, match="'y' has missing values"):
        is_anomaly(pa.array([1, None]), (), (), "y")
