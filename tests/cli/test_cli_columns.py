"""Tables whose columns do not fit the model."""

import pytest

from ptad.tables import read_table, write_table


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_a_column_of_which_nothing_can_be_read_is_warned_of(ptad, model, table, tmp_path, command):
    rows = read_table(table)
    place = rows.column_names.index("count")
    write_table(rows.set_column(place, "count", [["many"] * rows.num_rows]), tmp_path / "t.csv")
    more = ("--out", tmp_path / "s.csv") if command == "score" else ("--label", "status", "--normal", "ok")
    done = ptad(command, model, tmp_path / "t.csv", *more)
    assert done.exit_code == 0, done.stderr
    said = f"warning: Column 'count' counts as missing in every row: none of its {rows.num_rows} values can be read"
    assert done.stderr.count(said) == 1 and "give --decimal and --thousands." in done.stderr


def test_nothing_reaches_standard_output_before_the_table_can_be_read(ptad, model, table, tmp_path):
    rows = read_table(table)
    write_table(rows.drop_columns(["b"]), tmp_path / "t.csv")
    absent = ptad("score", model, tmp_path / "t.csv")
    assert absent.exit_code == 2 and absent.stdout == ""
    values = [rows["a"][0].as_py(), float("inf"), *rows["a"][2:].to_pylist()]
    write_table(rows.set_column(rows.column_names.index("a"), "a", [values]), tmp_path / "t.csv")
    infinite = ptad("score", model, tmp_path / "t.csv")
    assert infinite.exit_code == 2 and infinite.stdout == "" and "column 'a', row 3 (the header" in infinite.stderr
