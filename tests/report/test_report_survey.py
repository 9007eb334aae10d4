"""The survey's seam: what the model said of a batch can be kept, and counted in later without the model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptad.detector import Detector
from ptad.report.content import ReportSettings, make_content
from ptad.report.survey import BatchScores, Label, Survey


def content(survey: Survey) -> dict:
    made = make_content(survey, ReportSettings(top=9, label="truth", normal=("good",)), "t", "m")
    return {name: value for name, value in made.items() if name != "made"}


def test_kept_scores_count_like_fresh_ones(model, table, monkeypatch):
    table["truth"] = ["bad" if i in (3, 5, 7) else "good" for i in range(len(table))]
    batches = pa.Table.from_pandas(table, preserve_index=False).to_batches(max_chunksize=50)
    label = Label("truth", ("good",))
    fresh, later = Survey(model, 9, label), Survey(model, 9, label)
    kept = []
    for batch in batches:
        found = fresh.add(batch)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, found.to_batch().schema) as writer:
            writer.write_batch(found.to_batch())
        kept.append(sink.getvalue())
    assert fresh.n_flagged > 0 and fresh.share.sum() > 0
    with monkeypatch.context() as patched:  # from here on the model is not asked
        patched.setattr(Survey, "score", None)
        patched.setattr(Detector, "scores", None)
        for batch, blob in zip(batches, kept, strict=True):
            later.count_in(batch, BatchScores.from_batch(pa.ipc.open_file(blob).get_batch(0)))
    assert content(later) == content(fresh)
    scores = model.anomaly_score(table.drop(columns="truth"))
    np.testing.assert_array_equal(np.sort(scores)[::-1][:9], later.highest.scores)


def test_scoring_counts_nothing(model, table):
    survey = Survey(model, 9)
    batch = pa.RecordBatch.from_pandas(table, preserve_index=False)
    first = survey.score(batch, 0)
    assert survey.n_rows == 0 and survey.n_flagged == 0 and not survey.share.any()
    np.testing.assert_array_equal(first.scores, survey.score(batch, 0).scores)
