"""Bad input on the command line: one clear line and exit code 2, or the documented treatment."""

import gzip
import json
import os
import resource

import numpy as np
import pyarrow as pa
import pytest

from ptad.jobs import batches
from ptad.tables import read_table, write_table

HEADER = "a,b\n"
BODY = "".join(f"{i % 7}.5,{i % 5}\n" for i in range(40))


@pytest.fixture
def fit(ptad, tmp_path, tiny):
    """Fit a tiny model on a file with this content; the result, and its summary when it worked."""

    def run(content, name="t.csv", *args):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        result = ptad("fit", tmp_path / name, "--out", tmp_path / "m", "--quiet", "--json", *tiny, *args)
        assert (tmp_path / "m").exists() == (result.exit_code == 0)
        return result

    return run


def refused(result):
    """The message of a mistake of the user."""
    assert result.exit_code == 2 and not result.stdout
    return json.loads(result.stderr)["error"]["message"]


def accepted(result):
    """The summary of a fit that worked."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        ("", ["t.csv is empty", "Give a file with a header and rows"]),
        (HEADER, ["t.csv", "no rows", "Give a file with"]),
        (HEADER + "1,2\n", ["1 row", "At least 2 rows"]),
        (HEADER + ",\n" * 30, ["No column is left", "'a' (all values are missing)", "Add columns that vary"]),
        (HEADER + "1,x\n" * 30, ["No column is left", "'a' (constant: 1)", "'b' (constant: 'x')"]),
        ("a,a\n" + BODY, ["t.csv: duplicate column names 'a'", "Rename"]),
        ("a,\n" + BODY, ["t.csv: the header has no name", "position 2", "Write a name"]),
        (HEADER + BODY + "1,2,3\n", ["t.csv, line 42", "3 cells where the header has 2", "Correct that line"]),
        ("naïve,b\n".encode("latin-1") + BODY.encode(), ["t.csv is not utf-8 text", "--encoding latin-1"]),
        (HEADER + BODY + "inf,1\n", ["infinity", "column 'a', row 42 (the header is row 1)", "Replace it"]),
    ],
)
def test_tables_that_cannot_be_used(fit, content, messages):
    message = refused(fit(content))
    assert all(part in message for part in messages), message


@pytest.mark.parametrize(
    ("content", "types"),
    [
        ("\ufeff" + HEADER + BODY, {"numeric": 2}),
        ("naïve,b\n" + BODY, {"numeric": 2}),
        (
            "a,b\n" + "".join(f'"line\none",{i % 7}\n"two",{i % 5}\n' for i in range(20)),
            {"categorical": 1, "numeric": 1},
        ),
        ("a,b\n" + "".join(f'"{i % 7}",{i % 5}\n' for i in range(40)), {"numeric": 2}),
        ("a,b\n" + "".join(f"0{i % 7},{i % 5}\n" for i in range(40)), {"categorical": 1, "numeric": 1}),
        (
            "a,b\n" + "".join(f"{'x' if i % 3 else i % 7},{i % 5}\n" for i in range(40)),
            {"categorical": 1, "numeric": 1},
        ),
        ("a,b\n" + "".join(f"{2**60 + i % 7},{i % 5}\n" for i in range(40)), {"numeric": 2}),
        (
            "a,b\n" + "".join(f"{(1, 9999)[i % 2]:04d}-01-0{1 + i % 7},{i % 5}\n" for i in range(40)),
            {"date": 1, "numeric": 1},
        ),
    ],
    ids=["BOM", "UTF-8 names", "quoted newlines", "numbers in quotes", "codes", "mixed", "beyond 2^53", "far dates"],
)
def test_documented_treatments(fit, ptad, tmp_path, content, types):
    assert accepted(fit(content))["columns_by_type"] == types
    scored = ptad("score", tmp_path / "m", tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    assert scored.exit_code == 0, scored.stderr
    before, after = read_table(tmp_path / "t.csv"), read_table(tmp_path / "o.csv")
    assert after.select(before.column_names).equals(before)  # what came in goes out
    assert np.isfinite(after["score"].to_numpy()).all()


def test_other_encoding(fit):
    text = ("naïve,b\n" + BODY).encode("latin-1")
    assert accepted(fit(text, "t.csv", "--encoding", "latin-1"))["columns_used"] == 2


def test_named_missing_values(fit):
    content = HEADER + BODY + "?,1\n? ,2\n"
    named = accepted(fit(content, "t.csv", "--missing", "?"))
    assert named["columns_by_type"] == {"numeric": 2} and named["bad_cells"] == 0
    few = accepted(fit(content))  # up to 5 % of a column
    assert few["columns_by_type"] == {"numeric": 2} and few["columns_with_bad_cells"] == {"a": 2}
    many = accepted(fit(content + "?,3\n"))
    assert many["columns_by_type"] == {"categorical": 1, "numeric": 1} and many["bad_cells"] == 0


def test_fewer_rows_than_columns(fit):
    rng = np.random.default_rng(0)
    lines = [",".join(f"c{i}" for i in range(12))] + [",".join(map(str, row)) for row in rng.normal(size=(6, 12))]
    summary = accepted(fit("\n".join(lines)))
    assert (summary["training_rows"], summary["columns_used"]) == (6, 12)


@pytest.mark.slow
def test_ten_thousand_columns(ptad, tmp_path, tiny):
    x = np.random.default_rng(0).normal(size=(24, 10_000))
    write_table(pa.table({f"c{i}": x[:, i] for i in range(10_000)}), tmp_path / "t.parquet")
    result = ptad("fit", tmp_path / "t.parquet", "--out", tmp_path / "m", "--quiet", "--json", *tiny)
    assert accepted(result)["columns_used"] == 10_000


def test_truncated_files(fit, tmp_path):
    write_table(pa.table({"a": np.arange(5000) / 7, "b": np.arange(5000) % 5}), tmp_path / "whole.parquet")
    cut = refused(fit((tmp_path / "whole.parquet").read_bytes()[:-500], "t.parquet"))
    assert "t.parquet is damaged, truncated or not Parquet" in cut and "Fetch or write it again" in cut
    zipped = refused(fit(gzip.compress((HEADER + BODY * 50).encode())[:-20], "t.csv.gz"))
    assert "t.csv.gz is damaged, truncated or not CSV" in zipped


def test_labels(fit):
    absent = refused(fit(HEADER + BODY, "t.csv", "--label", "y", "--normal", "1"))
    assert "t.csv has no label column 'y'. Its columns are: 'a', 'b'" in absent and "--label" in absent
    nothing = refused(fit(HEADER + BODY, "t.csv", "--label", "b", "--normal", "99"))
    assert "no normal rows" in nothing and "'b' is '99'" in nothing and "values are: 0, 1, 2, 3, 4" in nothing


def test_paths(ptad, table, model, tmp_path):
    def message(*args):
        return refused(ptad(*args, "--json"))

    assert "There is no file" in message("score", model, tmp_path / "none.csv")
    assert "No file matches" in message("score", model, tmp_path / "*.csv")
    (tmp_path / "empty").mkdir()
    assert "holds no table" in message("score", model, tmp_path / "empty")
    assert "There is no model folder" in message("score", tmp_path / "none", table)
    assert f"'{table}' is a file, not a model folder. Name a folder" in message("score", table, model)
    assert "it has no file 'manifest.json'. Name a folder that a model was saved to." in message(
        "info", tmp_path / "empty"
    )
    nowhere = message("score", model, table, "--out", tmp_path / "none" / "o.csv")
    assert f"none/o.csv cannot be written: there is no folder {tmp_path / 'none'}. Make it, or name" in nowhere
    assert "is a folder. Name a file" in message("score", model, table, "--out", tmp_path / "empty")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a pipe or a device" in message("score", model, table, "--out", tmp_path / "pipe.csv")
    assert "is a pipe or a device" in message("report", model, table, "--out", os.devnull)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "There is no model folder" in message("score", tmp_path / "loop", table)
    assert "is not a ptad model" in message("fit", table, "--out", tmp_path / "loop", "-q")
    assert "Give --explain a number from 0 to 1,000" in message("score", model, table, "--explain", 10**9)
    assert "names no format that can be written" in message("score", model, table, "--out", tmp_path / "o.docx")
    assert "is the table itself" in message("score", model, table, "--out", table)
    (tmp_path / "file").write_text("x")
    assert "cannot be written" in message("fit", table, "--out", tmp_path / "file" / "m")
    assert {p.name for p in tmp_path.iterdir()} == {"empty", "file", "loop", "pipe.csv"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission(ptad, table, model, tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refused(ptad("score", model, table, "--out", tmp_path / "o.csv", "--json"))


def test_full_disk(ptad, table, model, tmp_path, tiny):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, before[1]))
        scored = ptad("score", model, table, "--out", tmp_path / "o.csv", "--json")
        fitted = ptad("fit", table, "--out", tmp_path / "m", "--quiet", "--json", *tiny)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    message = refused(scored)
    assert str(tmp_path / "o.csv") in message and "File too large" in message and "space" in message
    message = refused(fitted)
    assert str(tmp_path / "m") in message and "File too large" in message and "space" in message
    assert list(tmp_path.iterdir()) == []


def test_input_that_changes_while_it_is_read(ptad, model, table, tmp_path, monkeypatch):
    changing = tmp_path / "t.csv"
    changing.write_bytes(table.read_bytes())
    plain = batches.score_batch

    def meanwhile(*args, **more):
        with changing.open("a") as file:
            file.write("1,1,1,1,red,kg,ok\n")
        return plain(*args, **more)

    monkeypatch.setattr(batches, "score_batch", meanwhile)
    result = ptad("score", model, changing, "--out", tmp_path / "o.csv", "--batch-rows", 20, "--json", "--quiet")
    message = refused(result)
    assert "t.csv changed while it was read" in message and "read a copy" in message
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
