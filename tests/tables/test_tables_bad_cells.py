"""Cells that cannot be read: missing, counted and listed, an error in strict mode."""

import datetime as dt
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptad.errors import DataError
from ptad.tables import BadCells, BadCellsWarning, fit_schema
from ptad.tables.bad_cells import summary

DAYS = [dt.datetime(2024, 1, 1 + i % 28, i % 24) for i in range(40)]
TRAINED = {"n": np.arange(40) / 4, "flag": [i % 3 == 0 for i in range(40)], "when": DAYS, "t": [d.time() for d in DAYS]}


@pytest.fixture(scope="module")
def schema():
    return fit_schema(pa.table(TRAINED))


def cells(bad):
    return [(cell.row, cell.column, cell.value, cell.reason) for cell in bad]


def test_unreadable_cells_are_missing_and_do_not_change_the_others(schema):
    rows = {
        "n": ["1.5", "abc", " 2 ", None],
        "flag": ["true", "0", "maybe", "1"],
        "when": ["2024-01-31", "foo", "2024-02-31", "2024-01-31T12:00"],
        "t": ["25:00", "12:30", None, "late"],
    }
    bad = BadCells()
    found = schema.encode(pa.table(rows), bad)
    assert cells(bad) == [
        (0, "t", "25:00", "not a time of day: '25:00'"),
        (1, "n", "abc", "not a number: 'abc'"),
        (1, "when", "foo", "not a date: 'foo'"),
        (2, "flag", "maybe", "not true or false: 'maybe'"),
        (2, "when", "2024-02-31", "not a date: '2024-02-31'"),
        (3, "t", "late", "not a time of day: 'late'"),
    ]
    assert bad.counts == {"when": 2, "t": 2, "n": 1, "flag": 1} and len(bad) == 6
    rows["n"][1] = rows["flag"][2] = rows["when"][1] = rows["when"][2] = rows["t"][0] = rows["t"][3] = None
    none = BadCells()
    assert np.array_equal(found, schema.encode(pa.table(rows), none), equal_nan=True)
    assert not none and schema.bad_cells(pa.table(rows)).counts == {}


def test_numbers_that_are_not_booleans(schema):
    bad = BadCells()
    table = pa.table({**{n: pa.nulls(3) for n in ("n", "when", "t")}, "flag": [0, 1, 2]})
    assert np.isnan(schema.encode(table, bad)[:, schema.names.index("flag")]).tolist() == [False, False, True]
    assert cells(bad) == [(2, "flag", "2", "not true or false: 2")]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_one_warning_or_one_error_in_every_library(schema, library):
    table = library({**{name: values[:3] for name, values in TRAINED.items()}, "n": ["1", "x", "y"]})
    with pytest.warns(
        BadCellsWarning, match=r"^2 cells cannot be read and count as missing: 'n' \(2\); the first:"
    ) as w:
        schema.encode(table)
    assert len(w) == 1 and w[0].filename == __file__  # it points here
    with pytest.raises(DataError, match=r"'n', row 1 \(counted from 0\): 'x' is not a number. Correct .* strict off"):
        schema.encode(table, BadCells(strict=True))
    assert schema.bad_cells(table).counts == {"n": 2}


def test_rows_of_errors_in_blocks_count_from_the_start_of_the_table(schema, monkeypatch):
    monkeypatch.setattr("ptad.tables.schema.CELLS_AT_ONCE", 8)
    bad = BadCells()
    schema.encode(pa.table({**{n: pa.nulls(20) for n in ("flag", "when", "t")}, "n": ["1"] * 17 + ["x"] * 3}), bad)
    assert [cell.row for cell in bad] == [17, 18, 19]


def test_array_of_objects_with_text_and_numbers():
    schema = fit_schema(np.arange(12.0).reshape(6, 2))
    bad = BadCells()
    found = schema.encode(np.array([[1, "abc"], [2, "3"]], dtype=object), bad)
    assert cells(bad) == [(0, "x1", "abc", "not a number: 'abc'")]
    assert np.array_equal(found, [[1, np.nan], [2, 3]], equal_nan=True)


def test_large_integers_in_a_column_with_a_bad_cell_are_exact():
    numbers = [2**60 + i for i in range(30)] * 2
    schema = fit_schema(pa.table({"c": numbers}))
    plain = schema.encode(pa.table({"c": numbers}))
    beside = schema.encode(pa.table({"c": [*map(str, numbers), "abc"]}), BadCells())
    assert np.array_equal(beside[:-1], plain) and np.isnan(beside[-1, 0])


def test_many_invalid_days_take_one_pass(monkeypatch):
    schema = fit_schema(pa.table({"when": DAYS}))
    days = [f"2023-02-{1 + i % 30:02d}" for i in range(3000)]
    bad = BadCells()
    schema.encode(pa.table({"when": days}), bad)
    assert len(bad) == sum(int(day[-2:]) > 28 for day in days)


def test_observed_values_of_unreadable_cells_are_none(schema):
    table = pa.table({**{n: pa.nulls(3) for n in ("flag", "when", "t")}, "n": ["1.5", "abc", "2"]})
    assert schema.observed(table)["n"] == [1.5, None, 2.0]
    assert schema.observed(table.set_column(1, "when", [["2024-01-31", "foo", None]]))["when"] == [
        "2024-01-31",
        None,
        None,
    ]


def test_a_training_column_with_few_bad_cells_keeps_its_type():
    n = [str(i / 4) for i in range(98)] + ["abc", "?"]
    when = [(dt.datetime(2024, 1, 1) + dt.timedelta(hours=i)).isoformat() + "Z" for i in range(99)] + ["soon"]
    bad = BadCells()
    schema = fit_schema(pa.table({"n": n, "when": when}), bad=bad)
    assert schema.types == {"n": "numeric", "when": "datetime"} and not any(note.doubtful for note in schema.notes)
    assert bad.counts == {"n": 2, "when": 1} and schema.missing_rate.tolist() == [0.02, 0.01]
    with pytest.raises(DataError, match=r"'n', row 98 .*'abc' is not a number"):
        fit_schema(pa.table({"n": n, "when": when}), bad=BadCells(strict=True))
    with pytest.warns(BadCellsWarning, match="3 cells"):
        fit_schema(pa.table({"n": n, "when": when}))
    whole = fit_schema(
        pa.table({"n": [*map(str, range(98)), "abc", "?"], "when": when}), types={"n": "numeric"}, bad=bad
    )
    assert whole.columns[0].integer  # bad cells have no say in what the others are


def test_a_column_without_readable_cells_is_a_warning(recwarn):
    schema = fit_schema(pa.table({"n": [0.5, 1.5, 2.5] * 9, "day": ["01/02/2024", "31/01/2024", "05/03/2024"] * 9}))
    wrong = pa.table({"n": ["high", "low", None], "day": ["soon", "01/02/2024", "later"]})
    with pytest.warns(
        BadCellsWarning, match=r"^Column 'n' counts as missing in every row: none of its 2 values can be"
    ):
        schema.encode(wrong)
    bad = BadCells()
    schema.encode(wrong, bad)
    assert list(bad.unread) == ["n"] and "give decimal= and thousands=" in str(bad.unread["n"])
    for fine in (wrong.slice(0, 1), wrong.set_column(0, "n", [["high", "low", "1.5"]])):
        schema.encode(fine, bad := BadCells())  # one row, and a column with a value that can be read
        assert len(bad) and not bad.unread


def test_a_type_that_many_values_contradict_is_a_doubtful_note():
    n = [str(i / 4) for i in range(90)] + ["abc"] * 5 + ["?"] * 5
    schema = fit_schema(pa.table({"n": n, "m": n}), types={"m": "numeric"}, bad=BadCells())
    assert schema.types == {"n": "text", "m": "numeric"}
    first, second = (note for note in schema.notes if note.doubtful)
    assert str(first).startswith("Column 'n' is read as text: 10 % of its values ('abc', '?') are not numbers")
    assert str(second).startswith("Column 'm' is read as numbers: 10 % of its values ('abc', '?') are not and count as")
    assert "types={'n': 'numeric'}" in str(first) and "types={'m': 'categorical'}" in str(second)
    words = fit_schema(pa.table({"c": ["red", "blue"] * 20}), bad=BadCells())
    assert words.types == {"c": "categorical"} and not words.notes


def test_no_warning_if_all_cells_can_be_read(schema):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema.encode(pa.table(TRAINED))


def test_missing_words_can_be_added_to_those_of_the_model():
    schema = fit_schema(pa.table({"n": ["1", "2", "?", "3"] * 5}), missing=["?"])
    bad = BadCells()
    found = schema.with_missing(["-"]).encode(pa.table({"n": ["?", " - ", "x", "1"]}), bad)
    assert np.isnan(found[:, 0]).tolist() == [True, True, True, False] and bad.counts == {"n": 1}
    assert schema.with_missing(()) is schema and schema.with_missing(["?", "-"]).missing == ("?", "-")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["1", "x", "y"]), min_size=1, max_size=9), min_size=1, max_size=5))
def test_bad_cells_are_split_by_parts_of_the_table(parts):
    bad = BadCells()
    rows = [value for part in parts for value in part]
    fit_schema(pa.table({"a": [1.0, 2.0], "b": [1.5, 3.0]})).encode(pa.table({"a": rows, "b": rows[::-1]}), bad)
    start = 0
    for part, (number, first) in zip(parts, bad.split([*map(len, parts)], 3), strict=True):
        own = [replace(cell, row=cell.row - start) for cell in bad if start <= cell.row < start + len(part)]
        assert (number, first) == (len(own), own[:3])
        start += len(part)


def test_a_summary_of_many_columns_has_the_right_plural():
    counts = {f"c{i}": 1 for i in range(12)}
    assert summary(counts).endswith("and 2 more columns") and summary(counts, most=11).endswith("and 1 more column")
    assert summary({"c": 1}) == "1 cell cannot be read and counts as missing: 'c' (1)"
