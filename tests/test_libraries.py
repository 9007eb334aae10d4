"""What comes back is of the kind that went in, and what is no table is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.typing import NDArray

from ptad import PTAD, DataError, Model

Rows = NDArray[np.float64]
OWN = {"anomaly_score": "anomaly_score", "p_value": "p_value"}
SKLEARN = ("score_samples", "decision_function", "predict", "transform")


@pytest.fixture(scope="module")
def indexed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with an index that is neither sorted nor a count."""
    return frame.head(7).set_index(pd.Index(list("gfedcba"), name="key"))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{k: None if v != v else v for k, v in row.items()} for row in table.to_dict("records")]


@pytest.mark.parametrize("name", OWN)
def test_one_value_per_row_comes_back_in_the_library_of_the_table(
    frame_detector: PTAD, indexed: pd.DataFrame, name: str
) -> None:
    method: Callable[..., Any] = getattr(frame_detector, name)
    found = method(indexed)
    assert isinstance(found, pd.Series) and found.index.equals(indexed.index) and found.name == name
    polars = method(pl.from_pandas(indexed))
    assert isinstance(polars, pl.Series) and polars.name == name
    arrow = method(pa.Table.from_pandas(indexed, preserve_index=False))
    batch = pa.Table.from_pandas(indexed, preserve_index=False).to_batches()[0]
    assert type(arrow) is np.ndarray and type(method(batch)) is np.ndarray
    for other in (polars, arrow, method(records(indexed)), method(indexed.to_dict("list"))):
        assert np.array_equal(np.asarray(other), found.to_numpy())
    assert isinstance(method(records(indexed)), np.ndarray) and isinstance(method(indexed.to_dict("list")), np.ndarray)


@pytest.mark.parametrize("name", OWN)
def test_arrays_and_lists_give_numpy(detector: PTAD, rows: Rows, name: str) -> None:
    method: Callable[..., Any] = getattr(detector, name)
    for given in (rows[:5], rows[:5].tolist(), tuple(map(tuple, rows[:5].tolist()))):
        found = method(given)
        assert type(found) is np.ndarray and found.shape == (5,) and found.dtype == np.float64


@pytest.mark.parametrize("name", SKLEARN)
def test_methods_of_scikit_learn_give_numpy_whatever_comes_in(
    frame_detector: PTAD, indexed: pd.DataFrame, name: str
) -> None:
    arrow = pa.Table.from_pandas(indexed, preserve_index=False)
    for table in (indexed, pl.from_pandas(indexed), arrow, records(indexed)):
        assert type(getattr(frame_detector, name)(table)) is np.ndarray


def test_fit_predict_gives_numpy(frame: pd.DataFrame) -> None:
    assert type(PTAD(verbose=0).fit_predict(frame)) is np.ndarray


def test_tables_come_back_in_the_library_of_the_table(
    frame_detector: PTAD, indexed: pd.DataFrame, detector: PTAD, rows: Rows
) -> None:
    terms, why = frame_detector.term_scores(indexed), frame_detector.explain(indexed)
    for table in (terms, why.contributions, why.observed, why.expected, why.reasons, why.terms, why.percentages):
        assert isinstance(table, pd.DataFrame) and table.index.equals(indexed.index)
    assert isinstance(why.score, pd.Series) and why.score.index.equals(indexed.index)
    assert np.array_equal(why.score_values, frame_detector.anomaly_score(indexed))
    assert np.allclose(why.percentages.to_numpy(), why.percentage_values)
    polars = frame_detector.explain(pl.from_pandas(indexed))
    assert isinstance(polars.contributions, pl.DataFrame) and isinstance(polars.score, pl.Series)
    assert isinstance(frame_detector.term_scores(pl.from_pandas(indexed)), pl.DataFrame)
    for given in (rows[:3], rows[:3].tolist()):
        arrow = detector.explain(given)
        assert isinstance(arrow.contributions, pa.Table) and isinstance(detector.term_scores(given), pa.Table)
        assert type(arrow.score) is np.ndarray


def test_a_saved_model_gives_the_same_kinds(frame_detector: PTAD, indexed: pd.DataFrame, tmp_path: Path) -> None:
    frame_detector.save(tmp_path / "model")
    light = Model.load(tmp_path / "model", device="cpu")
    for name in (*OWN, "term_scores"):
        ours, theirs = getattr(frame_detector, name)(indexed), getattr(light, name)(indexed)
        assert type(ours) is type(theirs) and ours.equals(theirs)
    assert light.explain(indexed).contributions.equals(frame_detector.explain(indexed).contributions)


def test_a_score_becomes_a_column_of_its_table(frame_detector: PTAD, indexed: pd.DataFrame) -> None:
    shuffled = indexed.iloc[::-1]
    table = shuffled.assign(score=frame_detector.anomaly_score(indexed))  # aligned by the index
    assert np.array_equal(table["score"], frame_detector.anomaly_score(shuffled))
    polars = pl.from_pandas(indexed)
    assert polars.with_columns(frame_detector.p_value(polars)).columns[-1] == "p_value"


# what is converted


def test_records_and_columns_are_tables(frame: pd.DataFrame, frame_detector: PTAD) -> None:
    expected = frame_detector.anomaly_score(frame).to_numpy()
    for given in (records(frame), frame.to_dict("list"), {name: frame[name].to_numpy() for name in frame}):
        model = PTAD(verbose=0).fit(given)
        assert list(model.feature_names_in_) == ["a", "b", "colour", "c"]
        assert np.array_equal(model.anomaly_score(frame), expected)


def test_keys_that_a_record_does_not_have_are_missing(frame_detector: PTAD) -> None:
    full = {"a": 0.1, "b": None, "colour": "red", "c": 0.1}
    without = {name: value for name, value in full.items() if name != "b"}
    assert frame_detector.anomaly_score([full, without])[0] == frame_detector.anomaly_score([without, full])[0]
    with pytest.raises(DataError, match="no column 'b'"):
        frame_detector.anomaly_score([without])


def test_structured_and_object_arrays(detector: PTAD, frame_detector: PTAD, frame: pd.DataFrame, rows: Rows) -> None:
    assert np.array_equal(detector.anomaly_score(rows.astype(object)), detector.anomaly_score(rows))
    expected = frame_detector.anomaly_score(frame.head(4)).to_numpy()
    with pytest.warns(UserWarning, match="valid feature names"):
        assert np.array_equal(frame_detector.anomaly_score(frame.head(4).to_numpy(dtype=object)), expected)
    structured = frame.head(4)[["a", "b", "c"]].to_records(index=False)
    model = PTAD(verbose=0).fit(frame[["a", "b", "c"]])
    assert np.array_equal(model.anomaly_score(structured), model.anomaly_score(frame[["a", "b", "c"]].head(4)))


# what is refused

SERIES = r"A table was expected, but got a Series.*one row.*iloc\[\[i\]\].*one column.*to_frame\(\)"
OTHER = r"A table was expected, but got {}\. Pass a pandas, polars or Arrow table, a list of dicts, or an array"
FILE = r"A table was expected, but got {}\. Read a file first.*read_table"
REFUSED = {
    "row": (lambda t: t.iloc[0], SERIES),
    "column": (lambda t: t["a"], SERIES),
    "polars series": (lambda t: pl.Series("a", [1.0]), SERIES),
    "text in an array": (lambda t: t.to_numpy(dtype=object), r"'red' is not a number.*An array takes numbers only"),
    "text array": (lambda t: t[["colour"]].to_numpy(dtype=str), r"'red' is not a number.*An array takes numbers only"),
    "one dimension": (lambda t: np.ones(3), r"Expected 2D array, got 1D.*reshape\(-1, 1\).*reshape\(1, -1\)"),
    "one list": (lambda t: [1.0, 2.0], r"Expected 2D array, got 1D"),
    "three dimensions": (lambda t: np.ones((2, 2, 2)), r"Expected 2D array, got 3D.*reshape\(len\(X\), -1\)"),
    "no rows": (lambda t: t.head(0), "The table has 0 rows"),
    "no rows of an array": (lambda t: np.ones((0, 3)), "The table has 0 rows"),
    "one row": (lambda t: t.head(1), r"The table has 1 row .*At least 2 rows"),
    "empty list": (lambda t: [], "The table is empty"),
    "no columns": (lambda t: {}, "no columns"),
    "number": (lambda t: 3, OTHER.format("int")),
    "numpy number": (lambda t: np.float64(3), OTHER.format("float64")),
    "nothing": (lambda t: None, OTHER.format("NoneType")),
    "generator": (lambda t: (row for row in [[1.0]]), OTHER.format("generator")),
    "set": (lambda t: {1, 2}, OTHER.format("set")),
    "text": (lambda t: "table.csv", FILE.format("str")),
    "path": (lambda t: Path("table.csv"), FILE.format(".*Path")),
    "sparse matrix": (lambda t: scipy.sparse.csr_matrix(np.eye(3)), r"Sparse input is not supported.*toarray\(\)"),
    "sparse dict": (lambda t: scipy.sparse.dok_array(np.eye(3)), r"Sparse input is not supported.*toarray\(\)"),
    "lazy": (lambda t: pl.from_pandas(t).lazy(), r"lazy.*collect\(\)"),
    "ragged": (lambda t: [[1.0, 2.0], [3.0]], "not rectangular.*same number of cells"),
    "one record": (lambda t: {"a": 1.0, "b": 2.0}, "Column 'a' of the dict holds float.*a list with one dict"),
    "columns that differ": (lambda t: {"a": [1, 2], "b": [1]}, r"differ in length \('a': 2, 'b': 1\)"),
    "complex": (lambda t: np.ones((3, 2), dtype=complex), "Complex data not supported.*two columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_is_refused_in_words(frame: pd.DataFrame, case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DataError, match=message) as caught:
        PTAD(verbose=0).fit(make(frame))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", ["row", "column", "one dimension", "number", "text", "sparse matrix", "one record"])
@pytest.mark.parametrize("method", ["anomaly_score", "p_value", "predict", "explain", "update", "transform"])
def test_new_rows_are_refused_in_the_same_words(
    frame: pd.DataFrame, frame_detector: PTAD, case: str, method: str
) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        getattr(frame_detector, method)(make(frame))


def test_a_wrong_number_of_columns_says_what_to_give(detector: PTAD, rows: Rows) -> None:
    with pytest.raises(DataError, match=r"X has 3 features, but PTAD is expecting 4 .*Give the columns"):
        detector.anomaly_score(rows[:, :3])
