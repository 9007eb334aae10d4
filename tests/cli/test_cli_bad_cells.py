"""Cells that cannot be read, on the command line: the run goes on, says so, and lists them by the rows of the file."""

import csv
import gzip
import json
import os

import pyarrow as pa
import pytest

from ptad.tables import read_table, write_table
from workbooks import write_xlsx

LABEL = ["--label", "status", "--normal", "ok"]


def changed(table, cells, **more):
    """The rows of a CSV file with other text in some cells: {(row of the file, column): text}."""
    header, *rows = list(csv.reader(table.read_text().splitlines()))
    for (number, column), text in cells.items():
        rows[number - 2][header.index(column)] = text
    return "\n".join(",".join(row) for row in [header, *rows]) + "\n"


def listed(path):
    return [tuple(row) for row in csv.reader(path.read_text().splitlines())][1:]


BAD_CELLS = {(42, "a"): "abc", (42, "count"): "?", (161, "b"): "n.a."}


@pytest.fixture
def bad(table, tmp_path):
    """A file with three cells that cannot be read, in the second and later batches of 20 rows."""
    path = tmp_path / "bad.csv"
    path.write_text(changed(table, BAD_CELLS))
    return path


@pytest.fixture
def others(make_table, tmp_path_factory):
    """A table like the one that the model was fitted on, with other rows."""
    path = tmp_path_factory.mktemp("others") / "others.csv"
    write_table(make_table(seed=1), path)
    return path


BAD = [
    ("42", "a", "abc", "not a number: 'abc'"),
    ("42", "count", "?", "not a number: '?'"),
    ("161", "b", "n.a.", "not a number: 'n.a.'"),
]


def test_score_goes_on_counts_lists_and_gives_the_reason(ptad, model, table, bad, tmp_path):
    args = ["--out", tmp_path / "o.parquet", "--explain", 2, "--batch-rows", 20, "--bad-cells", tmp_path / "list.csv"]
    result = ptad("score", model, bad, *args)
    assert result.exit_code == 0, result.stderr
    said = "3 cells cannot be read and count as missing: 'a' (1), 'b' (1), 'count' (1); listed in "
    assert f"{said}{tmp_path / 'list.csv'}" in result.stderr.splitlines()
    assert listed(tmp_path / "list.csv") == BAD
    found = read_table(tmp_path / "o.parquet")
    reasons = {found["why_1_reason"][40].as_py(), found["why_2_reason"][40].as_py()}
    assert reasons == {"not a number: 'abc'", "not a number: '?'"}
    assert found["a"][40].as_py() == "abc"  # what came in goes out
    gaps = tmp_path / "gaps.csv"
    gaps.write_text(changed(table, {(42, "a"): "", (42, "count"): "", (161, "b"): ""}))
    assert ptad("score", model, gaps, "--out", tmp_path / "g.parquet").exit_code == 0
    assert read_table(tmp_path / "g.parquet")["score"].equals(found["score"])
    summary = json.loads(ptad("score", model, bad, "--out", tmp_path / "o.csv", "--json", "--quiet").stdout)
    assert summary["bad_cells"] == 3 and summary["columns_with_bad_cells"] == {"a": 1, "b": 1, "count": 1}
    assert summary["rows_with_missing_values"] == 2


def test_the_list_is_whole_after_an_interruption(model, bad, tmp_path):
    from ptad.jobs.score import score_table

    def stop(done, total):
        if done == 60:
            raise KeyboardInterrupt

    options = {"batch_rows": 20, "bad_cells": tmp_path / "list.csv"}
    with pytest.raises(KeyboardInterrupt):
        score_table(model, bad, tmp_path / "o.csv", progress=stop, **options)
    assert not (tmp_path / "list.csv").exists()
    assert score_table(model, bad, tmp_path / "o.csv", **options).rows_resumed == 60
    assert listed(tmp_path / "list.csv") == BAD and not list(tmp_path.glob(".list*"))


def test_strict_refuses_the_first_one_in_one_line(ptad, model, bad, tmp_path):
    line = "error: Column 'a', row 42 (the header is row 1): 'abc' is not a number. Correct the value, "
    commands = [
        ("score", model, bad, "--out", tmp_path / "o.csv", "--batch-rows", 20),
        ("score", model, bad),
        ("explain", model, bad),
        ("evaluate", model, bad, *LABEL),
        ("report", model, bad, "--out", tmp_path / "r.html"),
        ("update", model, bad, "--out", tmp_path / "m"),
        ("recalibrate", model, bad, "--out", tmp_path / "m"),
        ("fit", bad, "--out", tmp_path / "m"),
    ]
    for command in commands:
        result = ptad(*command, "--strict", "--quiet")
        assert result.exit_code == 2 and result.stderr.startswith(line), (command, result.stderr)
        assert result.stdout == "" and result.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("t.csv.gz", "row 42 (the header is row 1)", "42"),
        ("t.parquet", "row 41", "41"),
        ("t.jsonl", "line 41", "41"),
        ("t.xlsx", "row 45 (the header is row 3)", "45"),
    ],
)
def test_rows_are_those_of_the_file(ptad, model, bad, tmp_path, name, place, number):
    if name == "t.csv.gz":
        (tmp_path / name).write_bytes(gzip.compress(bad.read_bytes()))
    elif name == "t.xlsx":  # two empty rows above the header, one below its third row
        rows = [list(row) for row in csv.reader(bad.read_text().splitlines())]
        empty = [[None] * len(rows[0])]
        write_xlsx(tmp_path / name, {"s": [*empty * 2, *rows[:4], *empty, *rows[4:]]})
    else:
        write_table(read_table(bad), tmp_path / name)
    args = ["score", model, tmp_path / name, "--only-scores", "--batch-rows", 20]
    assert f"Column 'a', {place}: 'abc' is not a number" in ptad(*args, "--strict").stderr
    assert ptad(*args, "--bad-cells", tmp_path / "list.csv").exit_code == 0
    assert listed(tmp_path / "list.csv")[0] == (number, "a", "abc", "not a number: 'abc'")


def test_a_list_takes_the_place_of_no_other_file(ptad, model, bad, tmp_path, tiny):
    before = bad.read_bytes()
    out = tmp_path / "o.csv"
    for command in (
        ["fit", bad, "--out", tmp_path / "m", *tiny],
        ["score", model, bad],
        ["explain", model, bad],
        ["evaluate", model, bad, *LABEL],
        ["report", model, bad, "--out", tmp_path / "r.html"],
        ["recalibrate", model, bad, "--out", tmp_path / "m", *LABEL],
    ):
        result = ptad(*command, "--bad-cells", bad, "--quiet")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"The list of bad cells, {bad}, is the table itself. Name another file" in result.stderr
        assert bad.read_bytes() == before
    result = ptad("score", model, bad, "--out", out, "--bad-cells", out, "--quiet")
    assert result.exit_code == 2 and f"{out}, is the output itself" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_several_files_are_told_apart(ptad, model, table, bad, tmp_path):
    days = tmp_path / "days"
    days.mkdir()
    (days / "1.csv").write_bytes(table.read_bytes())
    (days / "2.csv").write_bytes(bad.read_bytes())
    refused = ptad("score", model, days, "--out", tmp_path / "o.csv", "--strict").stderr
    assert f"Column 'a', {days / '2.csv'}, row 42 (the header is row 1): 'abc' is not" in refused
    assert ptad("score", model, days, "--out", tmp_path / "o.csv", "--bad-cells", tmp_path / "l.csv").exit_code == 0
    assert listed(tmp_path / "l.csv") == [(*cell, str(days / "2.csv")) for cell in BAD]


def test_every_command_counts_and_lists_them(ptad, model, bad, others, tmp_path, tiny):
    path, new = tmp_path / "list.csv", tmp_path / "new.csv"
    new.write_text(changed(others, BAD_CELLS))
    commands = {
        "explain": [model, bad],
        "evaluate": [model, bad, *LABEL],
        "report": [model, bad, "--out", tmp_path / "r.html"],
        "recalibrate": [model, new, "--out", tmp_path / "m", *LABEL],
        "fit": [bad, "--out", tmp_path / "m", *tiny, *LABEL],
    }
    # row 161 is labelled as broken: what is fitted on has only the others, under their numbers in the file
    normal = BAD[:2]
    for command, args in commands.items():
        path.unlink(missing_ok=True)
        result = ptad(command, *args, "--bad-cells", path)
        assert result.exit_code == 0, result.stderr
        of_normal = command in ("recalibrate", "fit")
        assert listed(path) == (normal if of_normal else BAD), command
        said = " ".join(result.stdout.split() if of_normal else result.stderr.split())
        assert f"{len(normal) if of_normal else 3} cells c" in said and "as missing" in said, command
        found = json.loads(ptad(command, *args, "--json", "--quiet").stdout)
        if command == "report":
            assert found["bad"] == {"cells": 3, "columns": [["a", 1], ["b", 1], ["count", 1]]}
            assert all(row["place"] == f"row {row['row'] + 2} (the header is row 1)" for row in found["top"]["rows"])
        elif command != "explain":
            assert found["bad_cells"] == (2 if of_normal else 3)
            assert found["columns_with_bad_cells"] == ({"a": 1, "count": 1} | ({} if of_normal else {"b": 1}))


def test_explain_gives_the_reason_and_the_row_of_the_file(ptad, model, bad):
    entries = json.loads(ptad("explain", model, bad, "--top", 40, "--json", "--quiet").stdout)
    entry = next(e for e in entries if e["row"] == 40)
    assert entry["place"] == "row 42 (the header is row 1)"
    reasons = {c["column"]: (c["reason"], c["observed"]) for c in entry["columns"]}
    assert reasons["a"] == ("not a number: 'abc'", None)
    shown = ptad("explain", model, bad, "--top", 40, "--columns", 1, "--quiet").stdout
    assert sum(line.split()[:1] == ["42"] for line in shown.splitlines()) == 1


def test_a_training_column_is_questioned_above_five_percent(ptad, table, tmp_path, tiny):
    cells = {(n, "count"): "many" for n in range(2, 22)}
    (tmp_path / "t.csv").write_text(changed(table, cells))
    kept = ptad("fit", tmp_path / "t.csv", "--out", tmp_path / "m", *tiny)
    assert "Column 'count' is read as text: 12 % of its values ('many') are not numbers" in kept.stderr
    assert "--type count=numeric" in kept.stderr
    cells = dict(list(cells.items())[:8])
    (tmp_path / "t.csv").write_text(changed(table, cells))
    few = ptad("fit", tmp_path / "t.csv", "--out", tmp_path / "m", *tiny)
    assert "--type" not in few.stderr
    assert "8 cells count as missing: count 5 % (8 of 160 cells)" in " ".join(few.stdout.split())


def test_markers_of_the_model_and_of_the_command(ptad, table, others, tmp_path, tiny):
    marked = tmp_path / "t.csv"
    marked.write_text(changed(table, {(3, "a"): "?", (5, "b"): "-", (7, "count"): "?"}))
    fitted = ptad("fit", marked, "--out", tmp_path / "m", "--missing", "?", "--missing", "-", *LABEL, *tiny, "--json")
    assert json.loads(fitted.stdout)["bad_cells"] == 0
    new = tmp_path / "new.csv"
    new.write_text(changed(others, {(3, "a"): "?", (5, "b"): "-", (7, "count"): "none"}))
    gaps = tmp_path / "gaps.csv"
    gaps.write_text(changed(others, {(3, "a"): "", (5, "b"): "", (7, "count"): ""}))
    model, out = tmp_path / "m", tmp_path / "o.parquet"
    assert ptad("score", model, gaps, "--out", out).exit_code == 0
    expected = read_table(out)["score"]
    for command, more in {
        "score": ["--out", out],
        "explain": [],
        "evaluate": LABEL,
        "report": ["--out", tmp_path / "r.html"],
        "recalibrate": ["--out", tmp_path / "m2"],
    }.items():
        said = ptad(command, model, new, *more)
        assert "1 cell c" in said.stderr + said.stdout, (command, said.stderr)  # the word of the new table alone
        all_named = ptad(command, model, new, *more, "--missing", "none", "--strict")
        assert all_named.exit_code == 0, (command, all_named.stderr)
        if command == "score":
            assert read_table(out)["score"].equals(expected)
            assert read_table(out)["b"][3].as_py() == "-"  # what came in goes out


def test_names_that_were_probably_meant(ptad, model, table, tmp_path, tiny):
    fit = ["fit", table, "--out", tmp_path / "m", *tiny]
    for args, meant in (
        ([*fit, "--drop", "Colour"], "colour"),
        ([*fit, "--only", "a,coumt"], "count"),
        ([*fit, "--label", "Status", "--normal", "ok"], "status"),
        (["evaluate", model, table, "--label", "statis"], "status"),
        (["report", model, table, "--label", "STATUS", "--out", tmp_path / "r.html"], "status"),
    ):
        result = ptad(*args)
        assert result.exit_code == 2 and f"Did you mean '{meant}'?" in result.stderr, result.stderr
    write_table(
        read_table(table).rename_columns(["id", "a", "b", "Count", "colour", "unit", "status"]), tmp_path / "t.csv"
    )
    assert "no column 'count', which the model was trained with. Did you mean 'Count'?" in (
        ptad("score", model, tmp_path / "t.csv").stderr
    )


def test_the_training_table_is_recognised(ptad, model, table, make_table, tmp_path):
    write_table(make_table(160, seed=4), tmp_path / "new.csv")
    commands = {
        "evaluate": LABEL,
        "score": ["--out", tmp_path / "o.csv"],
        "report": ["--out", tmp_path / "r.html"],
    }
    for command, more in commands.items():
        own, new = ptad(command, model, table, *more), ptad(command, model, tmp_path / "new.csv", *more)
        if command == "report":
            assert "Held-out scores of the training rows: the model was fitted on this table" in own.stderr
        else:
            assert "warning: the model was fitted on this table, or on a part of it" in own.stderr, command
            assert "a report shows held-out scores" in own.stderr
        assert "fitted on this table" not in new.stderr, command
        found = [
            json.loads(ptad(command, model, t, *more, "--json", "-q").stdout) for t in (table, tmp_path / "new.csv")
        ]
        assert [f["training_table"] for f in found] == [True, False], command


def test_shares_of_few_rows_are_counts(ptad, model, table, tmp_path):
    rows = read_table(table).take(pa.array([0, 7]))  # a normal row and a broken one
    for n, said in (
        (1, ["precision not defined", "recall not defined", "observed 0 of 1 normal rows"]),
        (2, ["precision 1 of 1 flagged rows are anomalies", "recall 1 of 1 anomalies are flagged"]),
    ):
        write_table(rows.slice(0, n), tmp_path / "t.csv")
        words = " ".join(ptad("evaluate", model, tmp_path / "t.csv", *LABEL).stdout.split())
        assert all(s in words for s in said) and "100 % (" not in words, words
    write_table(rows.slice(1, 1), tmp_path / "t.csv")
    one = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "o.csv").stderr
    assert "all rows" not in one and "%" not in one.replace("rate of 1 %", "")
    report = json.loads(ptad("report", model, tmp_path / "t.csv", "--out", tmp_path / "r.html", "--json", "-q").stdout)
    assert {c["verdict"] for c in report["drift"]["columns"]} == {"too few rows"}
    whole = " ".join(ptad("evaluate", model, table, *LABEL, "-q").stdout.split())
    assert "recall 100 % (20 of 20 anomalies are flagged)" in whole


def test_a_list_that_cannot_be_written_is_refused(ptad, model, bad, tmp_path):
    result = ptad("score", model, bad, "--out", tmp_path / "o.csv", "--bad-cells", tmp_path / "none" / "list.csv")
    assert result.exit_code == 2 and "none/list.csv, cannot be written: there is no folder" in result.stderr
    (tmp_path / "pipe").symlink_to(os.devnull)  # a device must not be replaced by a file
    for name, why in (("pipe", "is a pipe or a device"), (".", "is a folder. Name a file")):
        result = ptad("score", model, bad, "--out", tmp_path / "o.csv", "--bad-cells", tmp_path / name)
        assert result.exit_code == 2 and why in result.stderr
    assert (tmp_path / "pipe").is_symlink() and not (tmp_path / "o.csv").exists()
    (tmp_path / "pipe").unlink()
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]
