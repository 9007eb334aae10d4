"""Values at the ends of their types: fit, score, explain and report work on them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptad import PTAD
from ptad.errors import BundleError
from ptad.report import write_report
from ptad.tables import read_table
from ptad.tables.text_columns import TextColumn

N = 60
RNG = np.random.default_rng(0)
COLUMNS = {
    "unsigned": (pa.array(RNG.integers(2**63, 2**64 - 1, N, dtype=np.uint64)), "numeric"),
    "small and large": (pa.array([2**64 - 1, 5, 7] * (N // 3), pa.uint64()), "numeric"),
    "signed": (pa.array([2**63 - 1, -(2**63), 3] * (N // 3)), "numeric"),
    "far days": (pa.array([2**31 - 1, -(2**31), 0] * (N // 3), pa.date32()), "date"),
    "views": (pa.array(["x", "y", "z"] * (N // 3), pa.string_view()), "categorical"),
    "large": (pa.array(np.where(RNG.random(N) < 0.1, np.nan, 1e300 * RNG.normal(size=N)), from_pandas=True), "numeric"),
    "largest": (pa.array(1.7e308 * RNG.uniform(-1, 1, N)), "numeric"),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", COLUMNS)
def test_extreme_values_are_explained_and_reported(tmp_path, name):
    array, type_ = COLUMNS[name]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": array, "b": RNG.normal(size=N)}), path)
    table = read_table(path)
    detector = PTAD(types={"a": type_}, false_alarm_rate=0.1, verbose=0).fit(table)
    why = detector.explain(table)
    assert np.isfinite(detector.anomaly_score(table)).all()
    assert np.isfinite(why.contribution_values).all()
    np.testing.assert_allclose(why.contribution_values.sum(axis=1), why.score, rtol=1e-6, atol=1e-9)
    if name == "far days":
        assert why.observed["a"].to_pylist()[:3] == [dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(1970, 1, 1)]
    elif name != "views":
        assert why.observed["a"].to_pylist() == array.to_pylist()
    detector.save(tmp_path / "model")
    for rows in (path, pa.table({"a": array, "b": RNG.normal(size=N)})):  # the training table, and another one
        content = write_report(tmp_path / "model", rows, tmp_path / "report.html")
        assert content["n_rows"] == N


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_unsigned_integers_come_back_in_the_library_of_the_table(library):
    table = library({"a": np.array(COLUMNS["small and large"][0]), "b": RNG.normal(size=N)})
    why = PTAD(types={"a": "numeric"}, false_alarm_rate=0.1, verbose=0).fit(table).explain(table)
    assert isinstance(why.observed, library) and list(why.observed["a"]) == list(table["a"])


def test_arrays_of_another_byte_order_are_the_same_numbers():
    x = RNG.normal(size=(N, 3))
    detector = PTAD(false_alarm_rate=0.1, verbose=0).fit(x)
    for order in "<>":
        np.testing.assert_array_equal(detector.anomaly_score(x.astype(f"{order}f8")), detector.anomaly_score(x))


def test_counts_of_more_rows_than_there_were_are_damage():
    with pytest.raises(BundleError, match="counts of a text column must be those of at most 3 rows"):
        TextColumn.from_json("t", "text", {"n_rows": 3, "counts": {"a": 2, "b": 2}})
