"""The other commands, help, versions, and how each command ends."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from ptad import PTAD, __version__
from ptad.cli.console import print_top_rows
from ptad.errors import TrainingError
from ptad.jobs.evaluate import compare
from ptad.tables import read_table, write_table

COMMANDS = ["fit", "update", "recalibrate", "score", "explain", "evaluate", "info", "demo"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(ptad, command):
    result = ptad(command, "--help")
    assert result.exit_code == 0
    assert "Examples" in result.stdout and f"ptad {command}" in result.stdout


def test_root(ptad):
    assert ptad("--version").stdout == f"ptad {__version__}\n"
    listed = ptad("--help").stdout
    assert all(f" {command} " in listed for command in [*COMMANDS, "benchmark"])
    assert ptad().exit_code == 2
    typo = ptad("scor")
    assert (
        typo.exit_code == 2
        and typo.stderr.startswith("error: ")
        and typo.stderr.endswith("'score'? See 'ptad --help'.\n")
    )


def test_completion(environment):
    command = [sys.executable, "-c", "from ptad.cli import main; main()"]
    env = {**environment, "_PTAD_COMPLETE": "complete_bash", "COMP_WORDS": "ptad ev", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'ptad'; from ptad.cli import main; main()"
    found = subprocess.run([*command[:2], code], env=env, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["evaluate"], found.stderr


def test_explain_shows_the_rows_with_the_highest_scores(ptad, model, table):
    result = ptad("explain", model, table, "--top", 3, "--columns", 2, "--json", "--quiet")
    entries = json.loads(result.stdout)
    scores = PTAD.load(model, device="cpu").anomaly_score(read_table(table))
    assert [e["row"] for e in entries] == np.argsort(-scores, kind="stable")[:3].tolist()
    assert [e["score"] for e in entries] == np.sort(scores)[::-1][:3].tolist()
    assert all(e["row"] % 8 == 7 and e["columns"][0]["column"] == "b" for e in entries)  # where b was planted
    first = entries[0]["columns"][0]
    assert first["observed"] == read_table(table)["b"][entries[0]["row"]].as_py()
    assert first["expected"] < first["observed"] - 10
    assert first["reason"].startswith("unusual") and 0 < first["percentage"] <= 100
    shown = ptad("explain", model, table, "--top", 3, "--columns", 2).stdout
    assert f"{entries[0]['score']:.4g}" in shown and f"{first['observed']:.4g}" in shown


def test_terminal_codes_in_cells_do_nothing(ptad, model, table, tmp_path):
    hostile = read_table(table).slice(0, 4).to_pydict()
    hostile["colour"] = ["\x1b[31mevil[/bold]"] * 4
    write_table(pa.table(hostile), tmp_path / "h.parquet")
    result = ptad("explain", model, tmp_path / "h.parquet", "--columns", 4)
    assert result.exit_code == 0 and "\x1b" not in result.stdout and "[31mevil[/bold]" in result.stdout


def test_evaluate(ptad, model, table):
    result = ptad("evaluate", model, table, "--label", "status", "--normal", "ok", "--json", "--quiet")
    found = json.loads(result.stdout)
    loaded = PTAD.load(model, device="cpu")
    rows = read_table(table)
    flagged = loaded.predict(rows) == -1
    bad = np.array(rows["status"].to_pylist()) == "broken"
    assert (found["rows"], found["anomalies"], found["prevalence"]) == (160, 20, 0.125)
    assert found["flagged"] == flagged.sum() and found["recall"] == flagged[bad].mean()
    assert found["precision"] == bad[flagged].mean() if flagged.any() else None
    assert found["observed_false_alarm_rate"] == flagged[~bad].mean()
    assert found["target_false_alarm_rate"] == 0.01
    assert found["auc_roc"] > 0.95 and found["auc_pr"] > 0.8
    low, high = found["false_alarm_interval"]
    assert low <= found["observed_false_alarm_rate"] <= high
    same = ptad("evaluate", model, table, "--label", "status", "--anomaly", "broken", "--json", "--quiet")
    assert json.loads(same.stdout) == found
    shown = ptad("evaluate", model, table, "--label", "status", "--normal", "ok", "--false-alarm-rate", 0.1).stdout
    assert "target 10 %" in shown and "(prevalence 0.1250)" in shown and "95 % interval" in shown


def test_a_label_is_not_warned_of(ptad, model, table, tmp_path):
    rows = read_table(table).slice(0, 40).to_pydict()
    rows["unit"] = ["kg"] * 39 + ["lb"]  # the model excludes it, since it was constant
    rows["truth"] = [0] * 39 + [1]  # the model does not know it
    write_table(pa.table(rows), tmp_path / "t.csv")
    assert "'unit' is excluded" in ptad("explain", model, tmp_path / "t.csv").stderr
    labelled = ptad("evaluate", model, tmp_path / "t.csv", "--label", "unit", "--normal", "kg")
    assert labelled.exit_code == 0 and "excluded" not in labelled.stderr and "ignored: 'truth'" in labelled.stderr
    labelled = ptad("evaluate", model, tmp_path / "t.csv", "--label", "truth")
    assert labelled.exit_code == 0 and "ignored" not in labelled.stderr


def test_numbers_out_of_their_range(ptad, model, table):
    for args, message in (
        (["explain", model, table, "--top", 0], "'top' must be at least 1. Got 0. Give --top a larger number."),
        (["demo", "--seed", -1], "Invalid value for '--seed'"),
        (["fit", table, "--out", "x", "--seed", -1], "Invalid value for '--seed'"),
        (["fit", table, "--out", "x", "--max-rows", 1], "the limit is 1. Give --max-rows at least 2."),
    ):
        result = ptad(*args)
        assert result.exit_code == 2 and message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(("n_flagged", "interval"), [(0, (0.0, 0.3085)), (5, (0.1871, 0.8129)), (10, (0.6915, 1.0))])
def test_the_interval_of_the_false_alarm_rate_is_exact(n_flagged, interval):
    normal = np.zeros(10, dtype=bool)
    evaluation = compare((np.arange(10) < n_flagged) * 2.0, normal, 1.0, 0.01)
    assert evaluation.false_alarm_interval == pytest.approx(interval, abs=1e-4)  # the textbook's values


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--label", "nothing"], "no label column 'nothing'"),
        (["--label", "status"], "holds other values than 0 and 1: 'ok', 'broken'"),
        (["--label", "status", "--normal", "ok", "--anomaly", "broken"], "not both"),
        (["--label", "status", "--normal", "Ok"], "Its values are: 'ok', 'broken'. Name one of them with --normal."),
        (["--label", "status", "--anomaly", "bad"], "Its values are: 'ok', 'broken'. Name one of them with --anomaly."),
        (
            ["--label", "status", "--normal", "ok", "--false-alarm-rate", "0.0001"],
            "needs at least 9,999 calibration rows; there are 140",
        ),
    ],
)
def test_wrong_labels(ptad, model, table, args, message):
    result = ptad("evaluate", model, table, "--quiet", *args)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("width", [80, 100, 200])
def test_percentages_are_whole_at_any_width(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = {"column": "a rather long name of a column", "reason": "unusual combination with another long name"}
    cells = {"observed": "a value that is much longer than the others", "expected": "another one of some length"}
    entry = {"row": 123456, "score": 215.7, "p_value": 0.00251, "anomaly": True}
    print_top_rows([entry | {"columns": [said | cells | {"percentage": 100.0}, said | cells | {"percentage": 84.0}]}])
    lines = capsys.readouterr().out.splitlines()
    ends = {line.split()[-1] for line in lines if line.split()[-1] in ("%", "100", "84")}
    assert ends == {"%", "100", "84"} and max(map(len, lines)) <= width


def test_info(ptad, model):
    found = json.loads(ptad("info", model, "--json").stdout)
    assert [c["name"] for c in found["columns"]] == ["a", "b", "count", "colour"]
    assert found["ptad_version"] == __version__ and found["calibration_rows"] == 140
    assert found["smallest_rate"] == pytest.approx(1 / 141) and found["changed_settings"] == {
        "calibration.folds": 5,
        "calibration.most_folds": 5,
    }
    assert found["reference_rows"] == 140 and found["batch_size"] is None
    loaded = PTAD.load(model, device="cpu")
    assert found["terms"] == [{"name": term.title(), "weight": term.weight} for term in loaded.config_.terms]
    assert found["bytes"] == sum(f.stat().st_size for f in model.iterdir())
    shown = ptad("info", model).stdout
    assert (
        "colour" in shown
        and "identifier" in shown
        and "calibration.folds" in shown
        and "local_reconstruction (weight" in shown
    )


def test_info_shows_names_that_look_like_markup(ptad, tmp_path):
    names = ["speed [/m]", "[red]load"]
    write_table(pa.table(np.random.default_rng(0).normal(size=(2, 60)).tolist(), names=names), tmp_path / "t.csv")
    ptad("fit", tmp_path / "t.csv", "--out", tmp_path / "model", "--quiet", "--false-alarm-rate", "0.05")
    shown = ptad("info", tmp_path / "model")
    assert shown.exit_code == 0 and all(name in shown.stdout for name in names)


def test_errors_as_json(ptad, tmp_path):
    for args in (["info", tmp_path, "--json"], ["info", "--nonsense", "--json"]):
        result = ptad(*args)
        error = json.loads(result.stderr)["error"]
        assert result.exit_code == 2 and not result.stdout and error["message"]
    assert error["type"] == "NoSuchOption"


def test_exit_codes_of_what_is_not_the_users_mistake(ptad, model, monkeypatch):
    def fail(error):
        def describe(folder):
            raise error

        monkeypatch.setattr("ptad.jobs.info.describe_model", describe)
        return ptad("info", model)

    training = fail(TrainingError("came to nothing"))
    assert training.exit_code == 1 and training.stderr == "error: came to nothing\n"
    bug = fail(KeyError("oops"))
    assert bug.exit_code == 1 and "Traceback" in bug.stderr
    assert bug.stderr.endswith("error: unexpected KeyError: 'oops'. This is a bug: please report it.\n")
    path = fail(PermissionError(13, "Permission denied", "/root/x"))
    assert path.exit_code == 2 and path.stderr == "error: /root/x: Permission denied. Check the path.\n"
    assert fail(KeyboardInterrupt()).exit_code == 130


def test_help_is_fast(environment):
    code = (
        "import sys; sys.argv = ['ptad', '--help']\n"
        "from ptad.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    slow = {'torch', 'sklearn', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)\n"
        "    sys.stderr.write(','.join(sorted(slow)))"
    )
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stderr == "" and "evaluate" in found.stdout


def test_demo(ptad):
    found = json.loads(ptad("demo", "--json", "--quiet").stdout)
    figures = found["evaluation"]
    assert (found["training_rows"], found["n_columns"]) == (178, 30)
    assert (figures["normal_rows"], figures["anomalies"]) == (179, 212)
    assert figures["auc_roc"] > 0.9 and figures["auc_pr"] > 0.9
    low, high = figures["false_alarm_interval"]
    assert low <= figures["target_false_alarm_rate"] <= high
    assert len(found["top_rows"]) == 5
    assert all(len(e["columns"]) == 3 and e["label"] == "malignant" for e in found["top_rows"])


def test_a_text_that_should_be_new_is_not_called_missing(capsys):
    reason = {"column": "n", "reason": "missing", "observed": None, "expected": None, "percentage": 100.0}
    print_top_rows([{"row": 0, "score": 1.0, "p_value": 0.5, "anomaly": False, "columns": [reason]}])
    assert " ".join(capsys.readouterr().out.splitlines()[1].split()) == "0 1 0.5 n missing missing other text 100"
