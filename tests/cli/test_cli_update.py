"""``ptad update``: a saved model learns on."""

import json

from ptad import PTAD
from ptad.tables import write_table


def test_updates_from_normal_rows_into_another_folder(ptad, tmp_path, model, make_table):
    write_table(make_table(400, seed=3), tmp_path / "new.csv")
    args = ["--out", tmp_path / "m2", "--label", "status", "--normal", "ok", "--steps", 5, "--json", "--quiet"]
    before = PTAD.load(model, device="cpu")
    result = ptad("update", model, tmp_path / "new.csv", *args)
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert (summary["rows_read"], summary["rows_learned"], summary["calibration_rows"]) == (400, 350, 175)
    updated = PTAD.load(tmp_path / "m2", device="cpu")
    assert updated.schema_.names == before.schema_.names
    assert updated.history_[-1]["step"] == before.history_[-1]["step"] + 5
    assert len(PTAD.load(model, device="cpu").history_) == len(before.history_)  # the model itself is as it was


def test_in_place_and_in_words(ptad, tmp_path, model, make_table):
    PTAD.load(model, device="cpu").save(tmp_path / "m")
    write_table(make_table(400, seed=3).append_column("extra", [range(400)]), tmp_path / "new.parquet")
    result = ptad("update", tmp_path / "m", tmp_path / "new.parquet", "--out", tmp_path / "m", "--steps", 5)
    assert result.exit_code == 0, result.stderr
    assert "warning: columns that were not there in training are ignored: 'extra'\n" in result.stderr
    assert "Updated model saved in" in result.stdout and "from 200 calibration rows" in result.stdout


def test_a_table_without_a_column_leaves_the_model_alone(ptad, tmp_path, model, make_table):
    write_table(make_table(50).drop_columns(["count"]), tmp_path / "new.csv")
    result = ptad("update", model, tmp_path / "new.csv", "--out", tmp_path / "m2")
    assert result.exit_code == 2 and "count" in result.stderr
    assert not (tmp_path / "m2").exists()
