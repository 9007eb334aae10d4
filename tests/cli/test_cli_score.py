"""``ptad score``: where rows come from and go to, and interruptions."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app
from ptad.tables import read_table, write_table
from stopping import HANG, Stops


@pytest.fixture(scope="session")
def scores(model, table):
    return PTAD.load(model, device="cpu").anomaly_score(read_table(table))


def test_into_a_file(ptad, model, table, scores, tmp_path):
    result = ptad("score", model, table, "--out", tmp_path / "o.parquet", "--explain", 1, "--json", "--quiet")
    summary = json.loads(result.stdout)
    found = read_table(tmp_path / "o.parquet")
    assert summary["rows"] == 160 and summary["anomalies"] == sum(found["anomaly"].to_pylist()) > 0
    assert found["id"].to_pylist() == list(range(1000, 1160)) and np.array_equal(found["score"].to_numpy(), scores)
    worst = int(scores.argmax())
    assert found["why_1"][worst].as_py() == "b" and float(found["why_1_expected"][worst].as_py()) < 20
    assert found["why_1_reason"][worst].as_py().startswith("unusual") and found["why_1_percentage"][worst].as_py() > 30
    loose = ptad("score", model, table, "--out", tmp_path / "o.parquet", "--false-alarm-rate", 0.5)
    flagged = np.array(read_table(tmp_path / "o.parquet")["anomaly"].to_pylist())
    expected = PTAD.load(model, device="cpu").set_false_alarm_rate(0.5).predict(read_table(table)) == -1
    assert np.array_equal(flagged, expected) and f"{flagged.sum()} flagged at" in loose.stderr
    assert "false-alarm rate of 50 %" in loose.stderr and loose.stdout == ""


def test_missing_values_and_unseen_categories_are_counted(ptad, model, table, tmp_path):
    rows = read_table(table).to_pydict()
    rows["a"][3] = rows["b"][3] = rows["b"][77] = None
    rows["colour"][5] = rows["colour"][6] = "violet"
    rows["colour"][7] = None
    write_table(pa.table(rows), tmp_path / "t.parquet")
    args = ["score", model, tmp_path / "t.parquet", "--out", tmp_path / "o.parquet", "--batch-rows", 50]
    found = json.loads(ptad(*args, "--json", "--quiet").stdout)
    assert (found["rows_with_missing_values"], found["rows_with_unseen_categories"]) == (3, 2)
    assert found["columns_with_missing_values"] == {"b": 2, "a": 1, "colour": 1}
    assert found["columns_with_unseen_categories"] == {"colour": 2}
    said = ptad(*args).stderr.splitlines()
    assert said[1:] == [
        "3 rows with missing values: b (2), a (1), colour (1)",
        "2 rows with unseen categories: colour (2)",
    ]
    rows["count"] = [None] * 160
    write_table(pa.table(rows), tmp_path / "t.parquet")
    assert "160 rows with missing values: count (all rows), b (2)" in ptad(*args).stderr


def test_to_standard_output(ptad, model, table, scores, tmp_path):
    result = ptad("score", model, table, "--only-scores", "--json")
    (tmp_path / "o.csv").write_text(result.stdout)
    assert result.stdout.splitlines()[0] == '"score","p_value","anomaly"'
    assert np.array_equal(read_table(tmp_path / "o.csv")["score"].to_numpy(), scores)
    assert json.loads(result.stderr)["rows"] == 160  # standard output belongs to the rows


def test_from_standard_input_folder_and_glob(ptad, model, table, scores, tmp_path):
    lines = table.read_bytes().splitlines(keepends=True)
    days = tmp_path / "days"
    days.mkdir()
    (days / "1.csv").write_bytes(b"".join(lines[:100]))
    (days / "2.csv").write_bytes(lines[0] + b"".join(lines[100:]))
    for source in (days, str(days / "*.csv")):
        assert ptad("score", model, source, "--out", tmp_path / "o.parquet").exit_code == 0
        assert np.array_equal(read_table(tmp_path / "o.parquet")["score"].to_numpy(), scores)
    args = ["score", str(model), "-", "--out", str(tmp_path / "s.parquet"), "--quiet"]
    result = CliRunner().invoke(app, args, input=table.read_bytes())
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert np.array_equal(read_table(tmp_path / "s.parquet")["score"].to_numpy(), scores)
    assert not list(tmp_path.glob(".*"))


def test_columns_by_name(ptad, model, table, scores, tmp_path):
    rows = read_table(table)
    write_table(rows.select(["count", "colour", "b", "a"]), tmp_path / "t.csv")
    result = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    assert result.exit_code == 0 and "ignored" not in result.stderr
    assert np.array_equal(read_table(tmp_path / "o.csv")["score"].to_numpy(), scores)
    write_table(rows.append_column("new", rows["a"]), tmp_path / "t.csv")
    extra = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "o.csv")
    assert extra.stderr.splitlines()[0] == "warning: columns that were not there in training are ignored: 'new'"
    write_table(rows.drop_columns(["b"]), tmp_path / "t.csv")
    absent = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert absent.exit_code == 2 and "no column 'b', which the model was trained with" in absent.stderr
    write_table(rows.set_column(2, "b", [["x"] * 160]), tmp_path / "t.csv")
    changed = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "p.csv", "--strict")
    assert changed.exit_code == 2 and "Column 'b', row 2 (the header is row 1): 'x' is not a number" in changed.stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.slow
def test_interrupt_leaves_no_half_written_file_and_goes_on(ptad, ptad_process, environment, model, table, tmp_path):
    args = ["score", model, table, "--batch-rows", 2]
    ptad(*args, "--out", tmp_path / "whole.csv")
    out, partial = tmp_path / "o.csv", tmp_path / ".o.csv.partial"
    stops = Stops(tmp_path / "stops")
    stops.add("*/.o.csv.partial/*.arrow", 4, how="interrupt")  # three batches are kept
    process = ptad_process(*args, "--out", out, env={**environment, **stops.environment})
    stdout, stderr = process.communicate(timeout=HANG)
    assert process.returncode == 130, stderr
    assert stdout == b"" and stderr.decode().splitlines() == [
        "warning: interrupted: score again with the same arguments to resume",
        "error: interrupted",
    ]
    assert not out.exists() and not list(partial.glob("*.part")) and not list(partial.glob(".*.part"))
    assert len(list(partial.glob("*.arrow"))) == 3
    again = ptad(*args, "--out", out, "--json", "--quiet")
    assert json.loads(again.stdout)["rows_resumed"] == 6
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes() and not partial.exists()


@pytest.mark.slow
def test_reader_that_leaves_early(ptad_process, model, table):
    process = ptad_process("score", model, table, "--quiet", "--batch-rows", 1)
    process.stdout.close()
    assert process.wait(timeout=HANG) == 1
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.slow
def test_a_second_run_with_the_same_output_is_refused(ptad, ptad_process, environment, model, table, tmp_path):
    args = ["score", model, table, "--batch-rows", 20]
    ptad(*args, "--out", tmp_path / "whole.csv")
    out = tmp_path / "o.csv"
    stops = Stops(tmp_path / "stops")
    stop = stops.add("*/.o.csv.partial/*.arrow", 3, how="hold")
    first = ptad_process(*args, "--out", out, env={**environment, **stops.environment})
    stop.wait()
    for other in (args, [*args, "--explain", 1]):  # the same job, and one that would throw its results away
        second = ptad(*other, "--out", out, "--quiet")
        assert second.exit_code == 2
        assert f"is being written by another run of ptad (process {first.pid})" in second.stderr
    stop.release()
    _, stderr = first.communicate(timeout=HANG)
    assert first.returncode == 0, stderr
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not list(tmp_path.glob(".o.csv*"))


@pytest.mark.slow
def test_no_lock_is_left_by_a_run_that_was_killed(ptad, ptad_process, environment, model, table, tmp_path):
    args = ["score", model, table, "--batch-rows", 20]
    ptad(*args, "--out", tmp_path / "whole.csv")
    out = tmp_path / "o.csv"
    stops = Stops(tmp_path / "stops")
    stops.add("*/.o.csv.partial/*.arrow", 4)
    first = ptad_process(*args, "--out", out, env={**environment, **stops.environment})
    first.communicate(timeout=HANG)
    assert first.returncode == -9
    again = ptad(*args, "--out", out, "--json", "--quiet")
    assert json.loads(again.stdout)["rows_resumed"] == 60
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes() and not list(tmp_path.glob(".o.csv*"))


@pytest.mark.parametrize("command", ["report", "export"])
def test_other_outputs_have_one_writer_too(ptad, model, table, tmp_path, command):
    from ptad.files import OutputLock

    if command == "export":
        pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    args = [command, model, *([table] if command == "report" else []), "--out", out]
    with OutputLock(out):
        refused = ptad(*args)
    assert refused.exit_code == 2 and "is being written by another run of ptad" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_the_list_of_bad_cells_has_one_writer_too(ptad, model, table, tmp_path):
    from ptad.files import OutputLock

    args = ["score", model, table, "--out", tmp_path / "o.csv", "--bad-cells", tmp_path / "list.csv"]
    with OutputLock(tmp_path / "list.csv"):
        refused = ptad(*args)
    assert refused.exit_code == 2 and "list.csv' is being written by another run of ptad" in refused.stderr
    assert not list(tmp_path.iterdir())
    (tmp_path / ".list.csv.0123abcd.part").write_text("half")  # of a run that was killed
    assert ptad(*args).exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list.csv", "o.csv"]
