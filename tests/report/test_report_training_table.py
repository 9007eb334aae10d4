"""A report on the table that the model was fitted on: honest scores where possible, and always a note."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD
from ptad.jobs.batches import is_repeatable
from ptad.report import write_report, writing
from ptad.report.cross_fit import training_parts


def notes(content: dict) -> list[str | None]:
    return [note["id"] for note in content["notes"]]


def test_the_training_table_is_recognised_and_its_rows_are_held_out(model, rows_of, tmp_path):
    training = rows_of(240, 0)
    training.sample(frac=1.0, random_state=1).to_csv(tmp_path / "shuffled.csv", index=False)
    own = int((model.predict(training) < 0).sum())
    content = write_report(model, tmp_path / "shuffled.csv", tmp_path / "r.html")
    assert notes(content) == ["held-out"] and content["training_table"]
    assert content["n_rows"] == 240 and content["n_flagged"] >= own
    scores = np.sort(model.anomaly_score(training))[::-1]
    assert content["top"]["rows"][0]["score"] > scores[0]  # no row finds itself


def test_new_rows_beside_the_training_rows_are_not_fitted_on(model, rows_of):
    both = pd.concat([rows_of(30, 9), rows_of(240, 0)], ignore_index=True)
    batches = writing._open_table(both, model, "utf-8")[0]
    known = both.columns.drop("constant").tolist()
    numbers = np.concatenate([n for _, n in training_parts(model, batches, lambda batch: batch.select(known))])
    assert numbers.tolist() == list(range(30, 270))


def test_other_rows_are_not_taken_for_training_rows(model, table, tmp_path):
    content = write_report(model, table, tmp_path / "r.html")
    assert notes(content) == [] and not content["training_table"]


def test_what_is_read_only_once_is_said_to_be_the_training_table(model, rows_of, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "is_repeatable", lambda table: False)
    rows_of(240, 0).to_csv(tmp_path / "t.csv", index=False)
    content = write_report(model, tmp_path / "t.csv", tmp_path / "r.html")
    assert notes(content) == ["training-table"]


@pytest.mark.parametrize(("table", "again"), [("-", False), (["a.csv", "-"], False), ("a.csv", True)])
def test_standard_input_is_not_read_again(table, again):
    assert is_repeatable(table) is again


@pytest.mark.slow
def test_a_trained_network_is_not_trained_again_and_the_note_says_so(paper_model, rows_of, tmp_path):
    content = write_report(paper_model, rows_of(120, 0), tmp_path / "r.html")
    assert notes(content) == ["training-table"]


def test_the_training_table_has_not_drifted_from_itself(tmp_path):
    """Each text occurs twice: in the training table it is known, but a row itself does not count for new rows."""
    rng = np.random.default_rng(0)
    texts = [f"text number {rng.integers(10**9)}" for _ in range(120)] * 2
    table = pd.DataFrame({"note": texts, "size": rng.normal(size=240), "width": rng.normal(size=240)})
    model = PTAD(types={"note": "text"}, config={"calibration.most_folds": 5}, verbose=0).fit(table)
    content = write_report(model, table, tmp_path / "r.html")
    assert content["held_out"]
    assert {entry["verdict"] for entry in content["drift"]["columns"]} == {"none"}
