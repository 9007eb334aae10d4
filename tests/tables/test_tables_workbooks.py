"""Excel workbooks and OpenDocument spreadsheets."""

import datetime as dt
import sys
import zipfile

import pyarrow as pa
import pytest

from ptad.errors import DataError, MissingExtraError
from ptad.tables import TableSource, fit_schema, read_table
from workbooks import Failed, Formula, write_ods, write_xlsx

HEADER = ["n", "x", "day", "when", "word", "ok", "sum"]
ROWS = [
    [1, 0.5, dt.date(2014, 10, 17), dt.datetime(2014, 10, 17, 8, 30), "red", True, Formula("A2+B2", 1.5)],
    [2, None, dt.date(2014, 10, 18), dt.datetime(2014, 10, 18, 0, 0), "00501", False, Failed("#DIV/0!")],
]
EXPECTED = {
    "n": [1, 2],
    "x": [0.5, None],
    "day": [dt.date(2014, 10, 17), dt.date(2014, 10, 18)],
    "when": [dt.datetime(2014, 10, 17, 8, 30), dt.datetime(2014, 10, 18)],
    "word": ["red", "00501"],
    "ok": [True, False],
    "sum": [1.5, None],
}


def test_values_dates_formulas_and_failures(tmp_path):
    table = read_table(write_xlsx(tmp_path / "t.xlsx", {"one": [HEADER, *ROWS]}))
    assert table.to_pydict() == EXPECTED
    assert table["n"].type == pa.int64() and table["day"].type == pa.date32()


def test_ods_and_content_without_a_suffix(tmp_path):
    rows = [[v.value if isinstance(v, Formula) else v for v in row] for row in ROWS]
    path = write_ods(tmp_path / "t.ods", {"one": [HEADER, *rows]})
    assert read_table(path).to_pydict() == EXPECTED
    assert read_table(path.rename(tmp_path / "data")).to_pydict() == EXPECTED


def test_sheets_by_name_and_number(tmp_path, caplog):
    path = write_xlsx(tmp_path / "t.xlsx", {"old": [["a"], [1]], "new": [["a"], [2]], "2": [["a"], [3]]})
    assert read_table(path)["a"].to_pylist() == [1]
    assert "sheet 'old' is read, not 'new', '2'. Choose with sheet=" in caplog.text
    caplog.clear()
    for sheet, value in (("new", 2), ("1", 1), ("2", 3), ("3", 3)):  # a name comes before a number
        assert read_table(TableSource(path, sheet=sheet))["a"].to_pylist() == [value]
    assert not caplog.text
    with pytest.raises(DataError, match=r"no sheet 'x'. Its sheets are: 1 'old', 2 'new', 3 '2'"):
        read_table(TableSource(path, sheet="x"))
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"t.csv is not a workbook.* Leave out sheet="):
        read_table(TableSource(tmp_path / "t.csv", sheet="1"))


def test_empty_rows_and_columns_around_the_table(tmp_path, caplog):
    caplog.set_level("INFO", "ptad")
    body = [[None, "a", None, "b"], [None, 1, None, "x"], [], [None, 2, None, "y"], []]
    path = write_xlsx(tmp_path / "t.xlsx", {"s": [[], [], *body]})
    table = read_table(path)
    assert table.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert "sheet 's' begins with empty rows: the header is row 3" in caplog.text
    assert "1 empty row between others is passed over" in caplog.text


@pytest.mark.parametrize(
    ("rows", "merged", "message"),
    [
        ([["Sales 2014"], ["a", "b"], [1, 2]], None, "no name in cell B1, above a column with values.*delete a title"),
        ([["a", None], [1, 2]], None, "no name in cell B1"),
        ([["a", None, "c"], [1, 2, 3]], "A1:B1", "cells A1:B1 of the header are merged. Split them"),
        ([["a", "a"], [1, 2]], None, "duplicate column names 'a'"),
        ([[]], None, "sheet 's' is empty"),
        ([["a", "b"]], None, "a header but no rows"),
    ],
)
def test_headers_that_cannot_be_used(tmp_path, rows, merged, message):
    with pytest.raises(DataError, match=message):
        read_table(write_xlsx(tmp_path / "t.xlsx", {"s": rows}, merged))


def test_text_in_cells_goes_through_the_same_inference(tmp_path):
    rows = [["price", "day", "g"], *([f"{i},5", f"{i % 28 + 1:02d}/10/2014", i % 3] for i in range(40))]
    schema = fit_schema(read_table(write_xlsx(tmp_path / "t.xlsx", {"s": rows})))
    assert schema.types == {"price": "numeric", "day": "date", "g": "numeric"}


def test_missing_words_and_several_workbooks(tmp_path):
    write_xlsx(tmp_path / "a.xlsx", {"s": [["x", "w"], [1, "NA"], ["?", "b"]]})
    write_xlsx(tmp_path / "b.xlsx", {"s": [["x", "w"], [2, "c"]]})
    assert read_table(tmp_path, missing=["?"])["w"].to_pylist() == [None, "b", "c"]


def test_missing_extra_is_named(tmp_path, monkeypatch):
    path = write_xlsx(tmp_path / "t.xlsx", {"s": [["a"], [1]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'python-calamine'. .*pip install 'ptad\[excel\]'"):
        read_table(path)


def moved(path, far, *changes):
    """A copy of a workbook whose XML is changed."""
    with zipfile.ZipFile(path) as parts, zipfile.ZipFile(far, "w") as copy:
        for name in parts.namelist():
            text = parts.read(name).decode()
            for old, new in changes:
                text, name = text.replace(old, new), name.replace(old, new)
            copy.writestr(name, text)
    return far


@pytest.mark.parametrize(
    "cell",
    [
        '<row r="4000"><c r="XFD4000"><v>',
        '<row r="1048576"><c r="XFD1048576"><v>',
        '<row r="4294967295"><c r="ZZZZZZ4294967295"><v>',
        '<row r="4000"><c t="a>b" r = "XFD4000"><v>',
        '<row><c r="xfd4000"><v>',
        "<row>" + "<c/>" * 16_383 + "<c><v>1</v></c></row>" + "<row/>" * 3_997 + "<row><c><v>",
    ],
)
@pytest.mark.parametrize("part", ["worksheets/sheet1.xml", "Other/SHEET.dat"])
def test_a_distant_cell_is_an_error_before_the_grid_is_allocated(tmp_path, cell, part):
    near = write_xlsx(tmp_path / "near.xlsx", {"one": [["a"], [1]]})
    changes = (('<row r="2"><c r="A2"><v>', cell), ("worksheets/sheet1.xml", part))
    far = moved(near, tmp_path / "far.xlsx", *changes)
    with pytest.raises(
        DataError, match=r"far.xlsx: the last cell of a sheet is .*, and of the .* only [23] are filled"
    ):
        read_table(far)


def test_empty_distant_cells_are_ignored(tmp_path):
    near = write_xlsx(tmp_path / "near.xlsx", {"one": [["a"], [1]]})
    styled = "</sheetData>", '<row r="1048576"><c r="XFD1048576" s="1"/></row></sheetData>'
    assert read_table(moved(near, tmp_path / "styled.xlsx", styled))["a"].to_pylist() == [1]
