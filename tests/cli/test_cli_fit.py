"""``ptad fit``: rows, columns and settings from files and options."""

import importlib.util
import json

import numpy as np
import pytest

from ptad import PTAD
from ptad.cli.settings import gather_settings, parse_value
from ptad.errors import SettingError
from ptad.tables import write_table

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def test_learns_from_normal_rows_without_the_label(folder, model):
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["rows_read"], summary["rows_normal"], summary["training_rows"]) == (160, 140, 140)
    assert summary["columns_by_type"] == {"numeric": 3, "categorical": 1}
    assert summary["excluded"] == {
        "id": "identifier: every value is different",
        "unit": "constant: 'kg'",
        "status": "label column",
    }
    assert summary["calibration_rows"] == 140 and summary["false_alarm_rate"] == 0.01
    assert PTAD.load(model, device="cpu").schema_.names == ("a", "b", "count", "colour")


def test_options_reach_the_model(ptad, tmp_path, tiny, make_table):
    table = make_table(40).append_column("zip", [[str(10000 + i % 3) for i in range(40)]])
    write_table(table, tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(
        'false_alarm_rate = 0.2\nrandom_state = 7\ndrop = ["unit"]\n[types]\nzip = "categorical"\n'
        "[config.local_reconstruction]\nridge = 0.1\n[config.calibration]\nfolds = 4\n"
    )
    args = ["--only", "a,b,zip", "--config", tmp_path / "s.toml", "--seed", 3, "--max-rows", 30, "--quiet", "--json"]
    result = ptad("fit", tmp_path / "t.parquet", "--out", tmp_path / "m", *tiny, *args)
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["training_rows"] == 30 and summary["sampled"] and summary["rows_read"] == 40
    assert summary["columns_by_type"] == {"numeric": 2, "categorical": 1}
    loaded = PTAD.load(tmp_path / "m", device="cpu")
    assert loaded.false_alarm_rate_ == 0.2
    assert loaded.config_.terms[0].ridge == 0.1
    assert loaded.config_.calibration.folds == 5  # the command line wins over the file
    assert result.stderr == ""


def test_says_what_it_did_and_removes_the_checkpoint(ptad, tmp_path, table, tiny):
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "mine.txt").write_text("x")
    args = ["--max-rows", 50, "--checkpoint", tmp_path / "keep"]
    result = ptad("fit", table, "--out", tmp_path / "m", *tiny, *args)
    assert result.exit_code == 0, result.stderr
    assert "50 of 160 rows, a uniform sample" in result.stdout
    assert "4 numeric" in result.stdout or "3 numeric" in result.stdout
    assert "unit (constant: 'kg')" in result.stdout
    assert "uniform sample of 50 of 160 rows. Raise --max-rows" in result.stderr
    assert [p.name for p in (tmp_path / "keep").iterdir()] == ["mine.txt"]
    assert result.stdout.count("false-alarm rate") == 1 and "1.96 %" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--set", "ridge=3"], "no setting 'ridge'. A setting is named by its group and a dot"),
        (["--set", "network.n_steps=3"], "groups of this preset: local_reconstruction, "),
        (["--set", "local_reconstruction.rigde=1"], "no setting 'local_reconstruction.rigde'. Known settings: weight"),
        (["--set", "local_reconstruction.ridge=-1"], "must be a number, at least 0 and at most 1,000. Got -1"),
        (["--set", "calibration.method=guess"], "one of auto, folds, split, none. Got 'guess'"),
        (["--set", "reference.rows"], "--set must be GROUP.SETTING=VALUE"),
        (["--type", "a"], "--type must be COLUMN=TYPE"),
        (["--type", "a=colour"], "cannot be of type 'colour'"),
        (["--preset", "best"], "no preset 'best'. Choose one of: default, paper"),
        (["--false-alarm-rate", "often"], "'auto' or a number between 0 and 1, such as 0.01 for 1 %. Got 'often'"),
        (["--false-alarm-rate", "-0.1"], "'auto' or a number between 0 and 1, such as 0.01 for 1 %. Got '-0.1'"),
        (["--type", "colour=numeric"], "Column 'colour' cannot be of type 'numeric': none of its values ("),
        (["--type", "a=date"], "Column 'a' cannot be of type 'date': none of its values ("),
        (["more.csv"], "Several files are one TABLE: a folder, or a glob in quotes. See 'ptad fit --help'."),
        (["--false-alarm-rate", "2"], "--false-alarm-rate must be 'auto' or a number between 0 and 1"),
        pytest.param(
            ["--device", "abacus"],
            "no such device. Set --device to auto, cpu",
            marks=NEEDS_TORCH,
        ),
        (["--drop", "nothing"], "Correct the name in --drop."),
        (["--only", "nothing"], "Correct the name in --only."),
        (["--label", "status"], "belong together. Give --label and --normal, or neither"),
        (["--max-rows", "1"], "Give --max-rows at least 2"),
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
        ("[rare_pair]\nweight = 3", "unknown key 'rare_pair'. It is a group of settings: write [config.rare_pair]."),
        ("[config]\nsteps = 3", "no setting 'steps'"),
        ("[config.reference]\nsteps = 3", "no setting 'reference.steps'. Known settings: rows"),
        ("config = 3", "'config' must hold settings"),
        ("preset = ", "is not valid TOML"),
        pytest.param(f"key = '{'x' * 2**20}'", "is not valid TOML", id="without end"),
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
    assert result.exit_code == 2 and "is not a ptad model and is not replaced" in result.stderr
    assert (tmp_path / "photo.png").exists()


def test_columns_that_never_varied_and_dates_are_spoken_of(ptad, tmp_path, tiny, make_table):
    table = make_table().append_column("day", [np.arange(160).astype("datetime64[D]")])
    write_table(table, tmp_path / "t.parquet")
    said = ptad("fit", tmp_path / "t.parquet", "--out", tmp_path / "model", "--only", "a,unit,day", *tiny).stdout
    assert "day: later rows look anomalous by their date alone" in said
    place = table.column_names.index("unit")
    write_table(table.set_column(place, "unit", [["lb"] * 160]), tmp_path / "new.parquet")
    result = ptad("explain", tmp_path / "model", tmp_path / "new.parquet", "--top", 1)
    assert result.stderr.count("warning") == 1  # once, not per batch
    assert (
        "column 'unit' is excluded (constant: 'kg') but now holds 'lb'. To use it, fit again with --type unit=TYPE."
        in result.stderr
    )
    assert "warning" not in ptad("explain", tmp_path / "model", tmp_path / "t.parquet", "--top", 1).stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("3", 3),
        ("true", True),
        ("False", False),
        ("[1, 2.5]", [1, 2.5]),
        ('"3"', "3"),
        ("split", "split"),
        ("1e-3", 0.001),
    ],
)
def test_values_of_settings(text, value):
    found = parse_value(text)
    assert found == value and type(found) is type(value)


def test_none_is_a_word_or_nothing_as_the_setting_has_it(tmp_path):
    (tmp_path / "s.json").write_text('{"preset": "paper", "config": {"network": {"clip": "none"}}}')
    found = gather_settings(tmp_path / "s.json", {"network.patience": "none", "network.projection_mask": "none"}, {})
    assert found == {
        "preset": "paper",
        "config": {"network.clip": None, "network.patience": None, "network.projection_mask": "none"},
    }
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(SettingError, match=r"s\.json is not valid JSON"):
        gather_settings(tmp_path / "s.json", {}, {})


def test_a_preset_without_training_is_fitted_here_even_if_a_cluster_is_asked_for(ptad, table, tmp_path, tiny):
    result = ptad("fit", table, "--out", tmp_path / "m", "--engine", "ray", "--workers", 2, *tiny)
    assert result.exit_code == 0, result.stderr
    assert "warning: the preset 'default' has nothing to train on a cluster: fitting on this machine" in result.stderr
    assert PTAD.load(tmp_path / "m", device="cpu").detector_.calibration is not None
