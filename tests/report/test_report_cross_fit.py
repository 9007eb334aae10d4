"""The table that a model was fitted on: every row is scored by a detector that was fitted without it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ptad.report.cross_fit import CrossFit, RowScorer
from ptad.report.survey import Survey


@pytest.fixture(scope="module")
def training(rows_of) -> pa.Table:
    return pa.Table.from_pandas(rows_of(240, 0), preserve_index=False)  # what the model was fitted on


@pytest.fixture(scope="module")
def scorer(model, training):
    first, second = training.to_batches(max_chunksize=120)
    return CrossFit.fit(model, [(first, np.arange(120)), (second, np.arange(120, 240))])


def test_training_rows_are_as_normal_as_others_not_more(model, training, scorer):
    x, numbers = model.schema_.encode(training), np.arange(240)
    threshold = -model.offset_
    held_out, own = scorer.scores(training, x, numbers), model.detector_.scores(x)
    assert np.median(own) < np.median(held_out)  # a row finds itself
    assert (held_out > threshold).mean() < 0.05
    p_values = model.detector_.calibration.p_value(held_out)
    assert 0.35 < p_values.mean() < 0.65


def test_a_planted_anomaly_is_found_among_its_own_training_rows(make_detector, rows_of):
    table = rows_of(240, 3)
    table.loc[17, "length"] = 90.0
    model = make_detector().fit(table)
    rows, numbers = pa.RecordBatch.from_pandas(table, preserve_index=False), np.arange(240)
    scorer = CrossFit.fit(model, [(rows, numbers)])
    assert np.argmax(scorer.scores(rows, model.schema_.encode(rows), numbers)) == 17
    explanation = scorer.explain(rows, numbers)
    assert explanation.top(1)[17] == ["length"]


def test_explanations_are_those_of_the_scores_in_any_order(training, model, scorer):
    numbers = np.array([7, 3, 231, 8, 12])
    rows = training.take(pa.array(numbers))
    explanation = scorer.explain(rows, numbers)
    scores = scorer.scores(rows, model.schema_.encode(rows), numbers)
    np.testing.assert_array_equal(explanation.score, scores)
    np.testing.assert_allclose(explanation.contribution_values.sum(axis=1), scores, rtol=1e-5, atol=1e-5)
    assert explanation.observed["length"].to_pylist() == rows["length"].to_pylist()


def test_a_sample_of_many_rows_is_enough(make_detector, training):
    model = make_detector(config={"reference.rows": 40}).fit(training)
    batches = enumerate(training.to_batches(max_chunksize=20))
    scorer = CrossFit.fit(model, ((batch, 20 * i + np.arange(20)) for i, batch in batches))
    assert all(len(detector.reference) <= 50 for detector in scorer.detectors)


def test_few_rows_are_scored_with_the_model_itself(model, training):
    assert type(CrossFit.fit(model, [(training.to_batches()[0][:4], np.arange(4))])) is RowScorer


def test_a_survey_asks_by_the_number_of_the_row(model, training, scorer):
    survey = Survey(model, 5, scorer=scorer)
    survey.add_all(training.to_batches(max_chunksize=37))
    scores = scorer.scores(training, model.schema_.encode(training), np.arange(240))
    np.testing.assert_array_equal(survey.highest.numbers, np.argsort(-scores, kind="stable")[:5])
    np.testing.assert_array_equal(survey.explain_highest().score, survey.highest.scores)


def test_texts_are_counted_without_the_rows_of_the_fold(make_detector):
    rng = np.random.default_rng(0)
    notes = [f"note {i}" for i in range(120)] * 2  # every text twice
    table = pa.table({"x": rng.normal(size=240), "note": notes})
    model = make_detector(types={"note": "text"}).fit(table)
    scorer = CrossFit.fit(model, [(table.to_batches()[0], np.arange(240))])
    text = next(column for column in model.schema_.columns if column.name == "note")
    assert len(text.counts) == 120
    for k, schema in enumerate(scorer.schemas):
        known = next(column for column in schema.columns if column.name == "note")
        own = {notes[i] for i in range(240) if i % 5 == k}
        assert known.n_rows == 192 and not own & set(known.counts)
    # rows 0 and 120 are of the same fold: without them nobody knows their text, as in a new row
    new = pa.table({"x": table["x"].take([0]), "note": ["note of another kind"]})
    encoded = scorer.schemas[0].encode(table.take([0]))[0], scorer.schemas[0].encode(new)[0]
    names = scorer.schemas[0].encoded_names
    assert encoded[0][names.index("note: new")] == encoded[1][names.index("note: new")] == 1.0
    scores = scorer.scores(table, model.schema_.encode(table), np.arange(240))
    assert scores[0] == scorer.detectors[0].scores(encoded[0][None])[0]
