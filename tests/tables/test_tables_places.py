"""Places of rows in messages, and suggestions for misspelt names."""

import difflib
import gzip
import json

import pyarrow as pa
import pytest

from ptad.errors import DataError
from ptad.tables import fit_schema, read_table, scan_table, write_table
from ptad.tables.names import closest_name, did_you_mean
from ptad.tables.places import IN_MEMORY, SHEET, RowError, located
from workbooks import write_ods, write_xlsx

TABLE = pa.table({"a": range(10), "b": range(10)})


def test_row_numbering_of_each_format(tmp_path):
    for name, said in {
        "t.csv": "row 6 (the header is row 1)",
        "t.tsv": "row 6 (the header is row 1)",
        "t.csv.gz": "row 6 (the header is row 1)",
        "t.parquet": "row 5",
        "t.feather": "row 5",
        "t.jsonl": "line 5",
    }.items():
        write_table(TABLE, tmp_path / name)
        assert str(scan_table(tmp_path / name).places.of(4)) == said
    assert str(IN_MEMORY.of(4)) == "row 4 (counted from 0)"


def test_rows_of_a_workbook_are_those_of_the_sheet(tmp_path):
    nothing = [None, None]
    rows = [["a", "b"], [1, 2], [3, 4], nothing, nothing, [5, 6], nothing, [7, 8]]
    for write, name in ((write_xlsx, "t.xlsx"), (write_ods, "t.ods")):
        write(tmp_path / name, {"s": rows})
        places = scan_table(tmp_path / name).places
        assert [places.of(i).number for i in range(4)] == [2, 3, 6, 8]
        assert str(places.of(2)) == "row 6 (the header is row 1)"


def test_rows_of_a_sheet_count_from_its_header(tmp_path):
    pytest.importorskip("python_calamine")
    rows = [["a", "b"], [1, 2], [3, 4]]
    assert str(scan_table(write_ods(tmp_path / "t.ods", {"s": rows})).places.of(1)) == "row 3 (the header is row 1)"
    below = write_xlsx(tmp_path / "t.xlsx", {"s": [[None, None], [None, None], *rows]})
    assert str(scan_table(below).places.of(1)) == "row 5 (the header is row 3)"
    sheet = TABLE.replace_schema_metadata({SHEET: b"[3, []]"})  # as the service keeps a sheet
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, sheet.schema) as writer:
        writer.write_table(sheet)
    assert str(scan_table(tmp_path / "t.arrow").places.of(1)) == "row 5 (the header is row 3)"


def test_parts_and_picked_rows_keep_their_places(tmp_path):
    write_table(TABLE, tmp_path / "t.csv")
    places = scan_table(tmp_path / "t.csv").places
    assert places.after(3).of(2) == places.of(5) == places.picked([9, 5]).of(1)


def test_several_files_are_named(tmp_path):
    (tmp_path / "1.csv").write_text("a\n1\n2\n3\n")
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(b"a\n4\n5\n"))
    (tmp_path / "3.jsonl").write_text(json.dumps({"a": 6}))
    places = scan_table(tmp_path).places
    assert str(places.of(2)) == f"{tmp_path / '1.csv'}, row 4 (the header is row 1)"
    assert str(places.of(3)) == f"{tmp_path / '2.csv.gz'}, row 2 (the header is row 1)"
    assert str(places.of(5)) == f"{tmp_path / '3.jsonl'}, line 1"


def test_errors_name_the_place_of_the_row(tmp_path):
    write_table(TABLE, tmp_path / "t.csv")
    with (
        pytest.raises(DataError, match=r"^Column 'a', row 9 \(the header is row 1\): wrong$"),
        located(scan_table(tmp_path / "t.csv").places.after(5)),
    ):
        raise RowError("Column 'a', ", 2, ": wrong")


@pytest.mark.parametrize("given", ["amount", " Amount", "AMOUNT ", "Amout", "amounts", "a_mount"])
def test_similar_names_are_suggested(given):
    assert closest_name(given, ["id", "Amount", "total"]) == "Amount"
    assert did_you_mean([given], ["id", "Amount", "total"]) == " Did you mean 'Amount'?"


def test_other_names_are_not_suggested():
    assert closest_name("price", ["id", "Amount", "total"]) is None and did_you_mean(["price"], ["id"]) == ""
    two = did_you_mean(["amount", "Total", "x"], ["id", "Amount", "total"])
    assert two == " Did you mean 'Amount' for 'amount', 'total' for 'Total'?"


def test_few_names_are_compared_letter_by_letter(monkeypatch):
    """That takes the square of their length: whoever sends thousands of long names must not keep others waiting."""
    compared = []
    ratio = difflib.SequenceMatcher.ratio
    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", lambda m: compared.append(m.a) or ratio(m))
    alike = [f"{'ab' * 40}{i:04d}" for i in range(500)]
    assert closest_name("ba" * 40, [*alike, "ab" * 39 + "a"]) == "ab" * 39 + "a"
    assert len(set(compared)) <= 10
    assert closest_name("ab" * 60, ["ab" * 60 + "c"]) is None and closest_name("ab", ["ab" * 600]) is None
    assert len(set(compared)) <= 10


def test_columns_of_tables(tmp_path):
    table = pa.table({"Amount": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 5.0]})
    schema = fit_schema(table)
    with pytest.raises(DataError, match=r"no column 'Amount', which .* Did you mean 'amount '\?"):
        schema.encode(table.rename_columns(["amount ", "b"]))
    for setting in ({"drop": ["amount"]}, {"only": ["amount"]}, {"types": {"amount": "numeric"}}):
        name = next(iter(setting))
        with pytest.raises(DataError, match=rf"no column 'amount'. Did you mean 'Amount'\?.* Correct .* in {name}=\."):
            fit_schema(table, **setting)


@pytest.mark.parametrize("text", ["2024-01-01", "true", "12:30"])
def test_a_cell_of_another_type_alone_is_read_as_among_others(tmp_path, text):
    schema = fit_schema(pa.table({"a": [1.0, 2.0, 3.5], "b": [1.0, 2.0, 5.0]}))
    for rows in (f"{text},1\n", f"{text},1\n2.5,2\n"):
        (tmp_path / "t.csv").write_text("a,b\n" + rows)
        assert schema.bad_cells(read_table(tmp_path / "t.csv", schema=schema)).counts == {"a": 1}
    (tmp_path / "t.jsonl").write_text(json.dumps({"a": text, "b": 1}))
    assert schema.bad_cells(read_table(tmp_path / "t.jsonl", schema=schema)).counts == {"a": 1}


def test_short_names_are_suggested_where_only_one_is_near():
    assert closest_name("bmj", ["age", "sex", "bmi", "bp"]) == "bmi"
    assert closest_name("s12", ["s10", "s11"]) is None and closest_name("s1", ["s2", "b1"]) is None
