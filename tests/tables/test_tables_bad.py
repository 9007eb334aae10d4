"""Unusual types, missing values of every kind, and errors that name the column and the row."""

import datetime as dt
import io
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from small_tables import two

from ptad.errors import DataError
from ptad.tables import BadCells, fit_schema, read_table


def test_all_kinds_of_missing_are_nan():
    text = pd.DataFrame({"c": pd.Series(["a", None, np.nan, pd.NA, " ? ", "b"] * 4, dtype=object)})
    schema = fit_schema(text, missing=["?"])
    assert schema.columns[0].values == ("a", "b")
    assert np.isnan(schema.encode(text)[:6, 0]).tolist() == [False, True, True, True, True, False]
    assert schema.missing_rate.tolist() == [4 / 6]
    assert schema.observed(text)["c"][:6] == ["a", None, None, None, None, "b"]
    numbers = pd.DataFrame(
        {
            "float": [1.0, np.nan, 3.0] * 4,
            "nullable": pd.array([1, None, 3] * 4, dtype="Int64"),
            "object": pd.Series([1, None, 3] * 4, dtype=object),
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03"] * 4),
            "texty": ["1", "?", "3"] * 4,
        }
    )
    schema = fit_schema(numbers, missing=("?",))
    assert schema.types["texty"] == "numeric"
    assert np.isnan(schema.encode(numbers)[:3]).tolist() == [
        [False] * len(schema.features),
        [True] * len(schema.features),
        [False] * len(schema.features),
    ]
    polars = pl.DataFrame({"c": [1.0, float("nan"), None, 2.0]})
    assert np.isnan(fit_schema(polars).encode(polars)).ravel().tolist() == [False, True, True, False]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_names_row_and_column(bad):
    x = np.zeros((5, 3))
    x[3, 1] = bad
    with pytest.raises(DataError, match=r"Input X contains infinity.*'x1', row 3"):
        fit_schema(x)
    frame = pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, bad]})
    with pytest.raises(DataError, match=r"Input X contains infinity.*'b', row 2"):
        fit_schema(frame)
    fitted = fit_schema(pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}))
    with pytest.raises(DataError, match=r"infinity.*'b', row 2"):
        fitted.encode(frame)


def test_row_of_an_error_counts_from_the_start_of_the_table(monkeypatch):
    monkeypatch.setattr("ptad.tables.schema.CELLS_AT_ONCE", 4)
    fitted = fit_schema(two([1.0, 2.0] * 12))
    with pytest.raises(DataError, match=r"'c', row 17 .*'abc' is not a number"):
        fitted.encode(two(["1"] * 17 + ["abc"] + ["2"] * 6), BadCells(strict=True))


@pytest.mark.parametrize(
    ("values", "what"),
    [([[1], [2]] * 12, "(list|ndarray)"), ([{"k": 1}, {"k": 2}] * 12, "struct"), ([b"a", b"b"] * 12, "binary")],
)
def test_nested_and_binary_columns_are_an_error(values, what):
    for table in (two(values), two(values).to_pandas(), pl.from_arrow(two(values))):
        with pytest.raises(DataError, match=f"'c'.*{what}.*drop"):
            fit_schema(table)
        schema = fit_schema(table, drop=["c"])
        assert schema.names == ("good",) == fit_schema(table, only=["good"]).names
        assert schema.encode(table).shape == (24, 1)


def test_sets_and_complex_numbers_are_an_error():
    frame = pd.DataFrame({"c": pd.Series([{1}, "x"] * 12, dtype=object), "g": range(24)})
    with pytest.raises(DataError, match=r"'c'.*set"):
        fit_schema(frame)
    with pytest.raises(DataError, match="Complex"):
        fit_schema(np.ones((3, 2)) * 1j)


def test_mixed_objects_become_text():
    frame = pd.DataFrame({"c": pd.Series([1, "x", 2.0, True, None] * 5, dtype=object)})
    schema = fit_schema(frame)
    assert schema.columns[0].values == ("1", "2", "True", "x")
    x = schema.encode(frame)
    for i in range(5):
        assert np.array_equal(schema.encode(frame.iloc[i : i + 1]), x[i : i + 1], equal_nan=True)
    objects = pl.DataFrame({"c": pl.Series([1, "x", 2.0, True, None] * 5, dtype=pl.Object)})
    assert np.array_equal(schema.encode(objects), x, equal_nan=True)
    huge = pd.DataFrame({"c": pd.Series([2**70, 2**71, 2**70], dtype=object)})
    assert fit_schema(huge).types == {"c": "numeric"}


@pytest.mark.parametrize(
    ("trained", "given", "same_as"),
    [
        ([1, 2, 3, 3], ["3", "1", " 2 ", "2.0"], [3, 1, 2, 2]),
        ([1, 2, 3, 3], [3.0, 1.0, None, 2.5], [3.0, 1.0, None, 2.5]),
        ([1, 2, 3, 3], [True, False, True, None], [1, 0, 1, None]),
        ([1.5, 2.5, 3.0, 1.0], [3, 1, 2, 2], [3.0, 1.0, 2.0, 2.0]),
        (["a", "b", "a", "b"], pa.array(["b", "a", "z", None]).dictionary_encode(), ["b", "a", "z", None]),
        (["1", "2", "x", "x"], [1, 2, 3, None], ["1", "2", "3", None]),
        ([True, False, True, False], ["true", "FALSE", "1", None], [True, False, True, None]),
        ([True, False, True, False], [1, 0, 1.0, None], [True, False, True, None]),
        (
            pa.array([0, 1, 2, 3], pa.timestamp("s")),
            ["1970-01-01", "1970-01-01T00:00:02", None, "1970-01-01 00:00:01"],
            pa.array([0, 2, None, 1], pa.timestamp("s")),
        ),
        (
            pa.array([0, 1, 2, 3], pa.timestamp("s")),
            pa.array([0, 2, None, 1], pa.timestamp("ns")),
            pa.array([0, 0, None, 0], pa.timestamp("s")),
        ),
        (
            pa.array([0, 1, 2, 3], pa.time32("s")),
            ["00:00:02", "00:00", None, "00:00:01"],
            pa.array([2, 0, None, 1], pa.time32("s")),
        ),
    ],
)
def test_changed_types_are_converted(trained, given, same_as):
    schema = fit_schema(pa.table({"c": trained}))
    converted, plain = schema.encode(pa.table({"c": given})), schema.encode(pa.table({"c": same_as}))
    np.testing.assert_allclose(converted, plain, atol=1e-5)
    assert np.isnan(converted).any() == np.isnan(plain).any()


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        ([1, 2, 3, 3], ["1", "2", "three", "3"], "'c', row 2 .*'three' is not a number"),
        ([1, 2, 3, 3], [dt.date(2024, 1, 1)] * 4, "'c' should hold numbers but holds date32"),
        ([True, False, True, False], [0, 1, 2, 0], "'c', row 2 .*2 is not true or false"),
        ([True, False, True, False], ["true", "maybe", None, "false"], "'c', row 1 .*'maybe'"),
        (
            pa.array([0, 1, 2, 3], pa.timestamp("s")),
            ["2024-01-01", "yesterday"] * 2,
            "'c', row 1 .*'yesterday' is not a date",
        ),
        (
            pa.array([0, 1, 2, 3], pa.timestamp("s")),
            ["2024-01-01", "2024-02-31"] * 2,
            "'c', row 1 .*'2024-02-31' is not a date",
        ),
        (pa.array([0, 1, 2, 3], pa.timestamp("s")), [1, 2, 3, 4], "'c' should hold dates but holds int64"),
        (
            pa.array([0, 1, 2, 3], pa.time32("s")),
            ["00:00", "25:00", "01:00", None],
            "'c', row 1 .*'25:00' is not a time",
        ),
        (["a", "b", "a", "b"], [[1], [2], [3], [4]], "'c'.*list"),
    ],
)
def test_types_that_cannot_be_converted_are_an_error(trained, given, message):
    with pytest.raises(DataError, match=message):
        fit_schema(pa.table({"c": trained})).encode(pa.table({"c": given}), BadCells(strict=True))


def test_columns_are_matched_by_name():
    table = two([1.0, 2.0, 3.0] * 8)
    schema = fit_schema(table)
    with pytest.raises(DataError, match="no column 'c', which"):
        schema.encode(table.select(["good"]))
    wider = table.append_column("new", table["c"]).append_column("newer", table["c"])
    with pytest.warns(UserWarning, match="'newer', 'new'$") as caught:
        x = schema.encode(wider.select(["newer", "c", "new", "good"]))
    assert len(caught) == 1 and np.array_equal(x, schema.encode(table))


def test_column_names_must_be_present_and_unique():
    with pytest.raises(DataError, match="Duplicate column names: 'a'"):
        fit_schema(pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]))
    with pytest.raises(DataError, match="Duplicate column names: 'a'"):
        fit_schema(pa.table([[1, 2], [1, 2]], names=["a", "a"]))
    for unnamed in (None, "", "  ", np.nan):
        with pytest.raises(DataError, match=r"without a name at position 1.*Rename"):
            fit_schema(pd.DataFrame(np.ones((3, 2)), columns=["a", unnamed]))
    assert fit_schema(pd.DataFrame(np.arange(6.0).reshape(3, 2))).names == ("0", "1")


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows(rows):
    with pytest.raises(DataError, match=f"{rows} row.*At least 2 rows"):
        fit_schema(np.zeros((rows, 3)))
    with pytest.raises(DataError, match=f"{rows} row.*At least 2 rows"):
        fit_schema(pa.table({"a": pa.array([1.0] * rows, pa.float64())}))


def test_no_columns():
    with pytest.raises(DataError, match=r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"):
        fit_schema(np.zeros((3, 0)))


def test_objects_that_are_not_tables():
    with pytest.raises(DataError, match=r"Expected 2D array, got 1D array instead.*Reshape your data"):
        fit_schema(np.zeros(3))
    with pytest.raises(DataError, match=r"A table was expected, but got str.*read_table"):
        fit_schema("table.csv")
    with pytest.raises(DataError, match="collect"):
        fit_schema(pl.DataFrame({"a": [1, 2]}).lazy())
    with pytest.raises(DataError, match=r"(?i)sparse.*toarray"):
        fit_schema(type("csr_matrix", (), {"toarray": None})())
    with pytest.raises(DataError, match=r"'x1', row 0.*'abc' is not a number"):
        fit_schema(np.array([[1, "abc"], [2, "3"]], dtype=object))
    with pytest.raises(TypeError, match=r"argument must be .* string.* number") as caught:
        fit_schema(np.array([[1, {"foo": "bar"}], [2, 3]], dtype=object))
    assert isinstance(caught.value, DataError)
    with pytest.raises(DataError, match="rectangular"):
        fit_schema([[1, 2], [3]])
    with pytest.raises(DataError, match="dates"):
        fit_schema(np.zeros((3, 2), dtype="datetime64[s]"))


def test_rare_types_of_numbers():
    values = [1, 2, 3, 1]
    expected = fit_schema(pa.table({"c": values})).encode(pa.table({"c": values}))
    for frame in (
        pd.DataFrame({"c": np.array(values, dtype=np.float16)}),
        pd.DataFrame({"c": pd.arrays.SparseArray(values)}),
        pl.DataFrame({"c": pl.Series(values, dtype=pl.Int128)}),
        pl.DataFrame({"c": pl.Series(values).cast(pl.Decimal(10, 2))}),
        pa.table({"c": pa.array(values, pa.uint8())}),
        pd.DataFrame({"c": pd.Series(values, dtype=pd.ArrowDtype(pa.int32()))}),
    ):
        assert np.array_equal(fit_schema(frame).encode(frame), expected)
    masked = np.ma.masked_array([[1.0], [2.0], [9.0]], mask=[[False], [False], [True]])
    assert np.isnan(fit_schema(masked).encode(masked)).ravel().tolist() == [False, False, True]


@pytest.mark.parametrize("make", [np.asarray, lambda a: pd.DataFrame(a, columns=[f"c{i}" for i in range(a.shape[1])])])
def test_ten_thousand_columns(make):
    table = make(np.random.default_rng(0).normal(size=(30, 10_000)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = fit_schema(table)
        x = schema.encode(table)
    assert np.array_equal(x, np.asarray(table))


def test_too_long_lines_are_an_error_before_they_fill_the_memory(tmp_path, monkeypatch):
    with (tmp_path / "sparse.csv").open("wb") as file:
        file.truncate(10**10)  # takes no room on the disk
    for name, n_bytes in (("sparse.csv", "4,194,304"), ("sparse.jsonl", "16,777,216")):
        (tmp_path / "sparse.csv").replace(tmp_path / name)
        with pytest.raises(DataError, match=f"a line is longer than {n_bytes} bytes"):
            read_table(tmp_path / name)
        (tmp_path / name).replace(tmp_path / "sparse.csv")
    (tmp_path / "later.jsonl").write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 2**25)
    with pytest.raises(DataError, match="a line is longer than"):
        read_table(tmp_path / "later.jsonl")
    (tmp_path / "later.csv").write_bytes(b"a,b\n1," + b"x" * 2**25 + b"\n")
    with pytest.raises(DataError, match=r"a line is longer than 4,194,304 bytes.*quote"):
        read_table(tmp_path / "later.csv")
    for start in (b'"a,b\n' + b"1,2\n" * 50_000, b"a" * 200_000 + b",b\n1,2\n"):
        (tmp_path / "header.csv").write_bytes(start)
        with pytest.raises(DataError, match=r"header cannot be read.*never closed"):
            read_table(tmp_path / "header.csv")

    class Endless(io.RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.given += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    pipe = Endless()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe)))
    with pytest.raises(DataError, match="standard input: the first line"):
        read_table("-")
    assert pipe.given < 2**25
