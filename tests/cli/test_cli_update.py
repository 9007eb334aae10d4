"""``ptad update`` and ``ptad recalibrate``: further normal rows for a saved model."""

import json

import numpy as np
import pytest

from ptad import PTAD
from ptad.tables import read_table, write_table


def test_updates_from_normal_rows_into_another_folder(ptad, tmp_path, model, make_table):
    write_table(make_table(400, seed=3), tmp_path / "new.csv")
    args = ["--out", tmp_path / "m2", "--label", "status", "--normal", "ok", "--json", "--quiet"]
    before = PTAD.load(model, device="cpu")
    result = ptad("update", model, tmp_path / "new.csv", *args)
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert (summary["rows_read"], summary["training_rows"], summary["calibration_rows"]) == (400, 350, 175)
    assert summary["reference_rows"] == 140 + 175
    updated = PTAD.load(tmp_path / "m2", device="cpu")
    assert updated.schema_.names == before.schema_.names
    assert summary["false_alarm_rate"] == updated.false_alarm_rate_ == before.false_alarm_rate_  # never loosened
    assert len(PTAD.load(model, device="cpu").detector_.reference) == 140  # the model itself is as it was


@pytest.mark.parametrize(
    ("command", "done", "rows"), [("update", "Updated", 200), ("recalibrate", "Recalibrated", 400)]
)
def test_in_place_and_in_words(ptad, tmp_path, model, make_table, command, done, rows):
    PTAD.load(model, device="cpu").save(tmp_path / "m")
    write_table(make_table(400, seed=3).append_column("extra", [range(400)]), tmp_path / "new.parquet")
    result = ptad(command, tmp_path / "m", tmp_path / "new.parquet", "--out", tmp_path / "m")
    assert result.exit_code == 0, result.stderr
    assert "warning: columns that were not there in training are ignored: 'extra'\n" in result.stderr
    assert f"{done} model saved in" in result.stdout and f"from {rows} calibration rows" in result.stdout


def test_recalibrate_changes_the_threshold_only(ptad, tmp_path, model, make_table):
    PTAD.load(model, device="cpu").save(tmp_path / "m")
    rows = make_table(300, seed=5)
    write_table(rows, tmp_path / "new.csv")
    result = ptad("recalibrate", tmp_path / "m", tmp_path / "new.csv", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    before, after = PTAD.load(model, device="cpu"), PTAD.load(tmp_path / "m", device="cpu")
    scores = before.anomaly_score(read_table(tmp_path / "new.csv"))
    assert np.array_equal(after.anomaly_score(rows), scores)
    assert np.array_equal(after.detector_.calibration.scores, np.sort(scores))
    assert (scores > -after.offset_).sum() == 2  # at most 1 % of 301


@pytest.mark.parametrize(("command", "needed", "given"), [("update", 198, 197), ("recalibrate", 99, 98)])
def test_too_few_rows_for_the_rate_are_refused_with_the_number_needed(
    ptad, tmp_path, model, make_table, command, needed, given
):
    write_table(make_table(given, seed=3), tmp_path / "few.csv")
    refused = ptad(command, model, tmp_path / "few.csv", "--out", tmp_path / "m")
    assert refused.exit_code == 2 and f"a false-alarm rate of 0.01 needs {needed} rows" in refused.stderr
    assert not (tmp_path / "m").exists()
    write_table(make_table(needed, seed=3), tmp_path / "enough.csv")
    assert ptad(command, model, tmp_path / "enough.csv", "--out", tmp_path / "m").exit_code == 0


def test_another_rate_for_the_new_rows(ptad, tmp_path, model, make_table):
    write_table(make_table(600, seed=3), tmp_path / "new.csv")
    args = [model, tmp_path / "new.csv", "--out", tmp_path / "m", "--quiet", "--json"]
    # tighter than the 140 calibration rows of the model allow, and looser than its own
    for rate in (0.002, 0.2):
        found = json.loads(ptad("recalibrate", *args, "--false-alarm-rate", rate).stdout)
        assert found["false_alarm_rate"] == rate == PTAD.load(tmp_path / "m", device="cpu").false_alarm_rate_
    refused = ptad("recalibrate", *args, "--false-alarm-rate", 0.001)
    assert refused.exit_code == 2 and "needs 999 rows" in refused.stderr


def test_a_table_without_a_column_leaves_the_model_alone(ptad, tmp_path, model, make_table):
    write_table(make_table(50).drop_columns(["count"]), tmp_path / "new.csv")
    result = ptad("update", model, tmp_path / "new.csv", "--out", tmp_path / "m2")
    assert result.exit_code == 2 and "count" in result.stderr
    assert not (tmp_path / "m2").exists()


@pytest.mark.parametrize("command", ["update", "recalibrate"])
def test_the_training_table_is_refused(ptad, tmp_path, model, table, command):
    result = ptad(command, model, table, "--out", tmp_path / "m2", "--label", "status", "--normal", "ok")
    assert result.exit_code == 2 and f"To {command} it, give only rows that it was not fitted on" in result.stderr
    assert not (tmp_path / "m2").exists()


@pytest.mark.parametrize("command", ["update", "recalibrate"])
def test_rows_of_an_earlier_update_are_refused(ptad, tmp_path, model, make_table, command):
    write_table(make_table(400, seed=3), tmp_path / "new.csv")
    assert ptad("update", model, tmp_path / "new.csv", "--out", tmp_path / "m").exit_code == 0
    again = ptad(command, tmp_path / "m", tmp_path / "new.csv")
    assert again.exit_code == 2 and "The model was fitted on these rows, or on many of them" in again.stderr
