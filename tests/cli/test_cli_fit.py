"""``ptad fit``: rows, columns and settings from files and options."""

import json

import numpy as np
import pytest

from ptad import PTAD
from ptad.tables import write_table


def test_learns_from_normal_rows_without_the_label(folder, model):
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["rows_read"], summary["rows_normal"], summary["rows_learned"]) == (160, 140, 140)
    assert summary["columns_by_kind"] == {"number": 3, "category": 1}
    assert summary["left_out"] == {
        "id": "identifier: every value is different",
        "unit": "constant: 'kg'",
        "status": "dropped by the user",
    }
    assert summary["calibration_rows"] == 140 and summary["false_alarm_rate"] == 0.01
    assert PTAD.load(model, device="cpu").schema_.names == ("a", "b", "count", "colour")


def test_options_reach_the_model(ptad, tmp_path, tiny, make_table):
    table = make_table(40).append_column("zip", [[str(10000 + i % 3) for i in range(40)]])
    write_table(table, tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(
        'false_alarm_rate = 0.2\nrandom_state = 7\ndrop = ["unit"]\n[kinds]\nzip = "category"\n'
        '[config]\nn_steps = 15\nabd_width = 16\nclip = "none"\n'
    )
    args = ["--only", "a,b,zip", "--config", tmp_path / "s.toml", "--seed", 3, "--max-rows", 30, "--quiet", "--json"]
    result = ptad("fit", tmp_path / "t.parquet", "--out", tmp_path / "m", *tiny, *args)
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["rows_learned"] == 30 and summary["sampled"] and summary["rows_read"] == 40
    assert summary["columns_by_kind"] == {"number": 2, "category": 1}
    loaded = PTAD.load(tmp_path / "m", device="cpu")
    assert loaded.false_alarm_rate_ == 0.2
    assert loaded.config_.n_steps == 20 and loaded.config_.abd_width == 8  # the command line wins over the file
    assert loaded.config_.clip is None
    assert result.stderr == ""


def test_says_what_it_did_and_removes_the_checkpoint(ptad, tmp_path, table, tiny):
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "mine.txt").write_text("x")
    args = ["--max-rows", 50, "--checkpoint", tmp_path / "keep", "--set", "interval=5"]
    result = ptad("fit", table, "--out", tmp_path / "m", *tiny, *args)
    assert result.exit_code == 0, result.stderr
    assert "50 of 160 rows, a uniform sample" in result.stdout
    assert "4 number" in result.stdout or "3 number" in result.stdout
    assert "unit: constant: 'kg'" in result.stdout
    assert "uniform sample of 50 of 160 rows; raise --max-rows" in result.stderr
    assert [p.name for p in (tmp_path / "keep").iterdir()] == ["mine.txt"]
    assert result.stdout.count("false-alarm rate") == 1 and "1.96 %" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--set", "n_stepz=3"], "'n_stepz'"),
        (["--set", "n_steps=0"], "'n_steps' parameter of PTAD must be an int in the range [1, inf). Got 0"),
        (["--set", "n_steps"], "--set wants FIELD=VALUE"),
        (["--kind", "a"], "--kind wants COLUMN=KIND"),
        (["--kind", "a=colour"], "cannot be of kind 'colour'"),
        (["--preset", "best"], "'preset' parameter of PTAD must be a str among"),
        (["--false-alarm-rate", "often"], "'auto' or a number between 0 and 1. Got 'often'"),
        (["--false-alarm-rate", "2"], "'false_alarm_rate' parameter of PTAD"),
        (["--device", "abacus"], "'abacus', which cannot be used"),
        (["--drop", "nothing"], "no column 'nothing', named in 'drop'"),
        (["--only", "nothing"], "no column 'nothing', named in 'only'"),
        (["--label", "status"], "--label COLUMN and --normal VALUE belong together"),
        (["--max-rows", "1"], "--max-rows must be at least 2"),
        (["--max-rows", "many"], "'--max-rows'"),
        (["--unknown"], "--unknown"),
    ],
)
def test_wrong_options_are_the_users_mistake(ptad, table, tmp_path, args, message):
    result = ptad("fit", table, "--out", tmp_path / "m", "--quiet", *args)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and not result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("presett = 'paper'", "unknown key 'presett'"),
        ("n_steps = 3", "unknown key 'n_steps'. It is a field of ptad.Config: put it below [config]."),
        ("[config]\nsteps = 3", "unknown key [config] 'steps'"),
        ("config = 3", "Write [config] above its fields"),
        ("preset = ", "is not valid TOML"),
    ],
)
def test_wrong_settings_files_are_refused_by_key(ptad, table, tmp_path, content, message):
    (tmp_path / "s.toml").write_text(content)
    result = ptad("fit", table, "--out", tmp_path / "m", "--config", tmp_path / "s.toml")
    assert result.exit_code == 2 and message in result.stderr and str(tmp_path / "s.toml") in result.stderr
    absent = ptad("fit", table, "--out", tmp_path / "m", "--config", tmp_path / "none.toml")
    assert absent.exit_code == 2 and "none.toml cannot be read: No such file" in absent.stderr


def test_a_foreign_folder_is_left_alone(ptad, table, tmp_path):
    (tmp_path / "photo.png").write_text("x")
    result = ptad("fit", table, "--out", tmp_path)
    assert result.exit_code == 2 and "is not a ptad model: it is left alone" in result.stderr
    assert (tmp_path / "photo.png").exists()


def test_columns_that_never_varied_and_dates_are_spoken_of(ptad, tmp_path, tiny, make_table):
    table = make_table().append_column("day", [np.arange(160).astype("datetime64[D]")])
    write_table(table, tmp_path / "t.parquet")
    said = ptad("fit", tmp_path / "t.parquet", "--out", tmp_path / "model", "--only", "a,unit,day", *tiny).stdout
    assert "day: rows of a later time look strange" in said
    place = table.column_names.index("unit")
    write_table(table.set_column(place, "unit", [["lb"] * 160]), tmp_path / "new.parquet")
    result = ptad("explain", tmp_path / "model", tmp_path / "new.parquet", "--top", 1)
    assert result.stderr.count("warning") == 1  # once, not per batch
    assert "column 'unit' is left out (constant: 'kg') but now holds 'lb': fit with --kind" in result.stderr
    assert "warning" not in ptad("explain", tmp_path / "model", tmp_path / "t.parquet", "--top", 1).stderr
