"""The table that a model was fitted on: every row is scored by a detector that was fitted without it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ptad.report.cross_fit import CrossFit, Scorer
from ptad.report.survey import Survey


@pytest.fixture(scope="module")
def training(rows_of) -> pa.Table:
    return pa.Table.from_pandas(rows_of(240, 0), preserve_index=False)  # what the model was fitted on


@pytest.fixture(scope="module")
def scorer(model, training):
    x = model.schema_.encode(training)
    return CrossFit.fit(model, [(x[:100], np.arange(100)), (x[100:], np.arange(100, 240))])


def test_training_rows_are_as_normal_as_others_not_more(model, training, scorer):
    x, numbers = model.schema_.encode(training), np.arange(240)
    threshold = -model.offset_
    held_out, own = scorer.scores(x, numbers), model.detector_.scores(x)
    assert np.median(own) < np.median(held_out)  # a row finds itself
    assert (held_out > threshold).mean() < 0.05
    p_values = model.detector_.calibration.p_value(held_out)
    assert 0.35 < p_values.mean() < 0.65


def test_a_planted_anomaly_is_found_among_its_own_training_rows(make_detector, rows_of):
    table = rows_of(240, 3)
    table.loc[17, "length"] = 90.0
    model = make_detector().fit(table)
    x, numbers = model.schema_.encode(table), np.arange(240)
    scorer = CrossFit.fit(model, [(x, numbers)])
    assert np.argmax(scorer.scores(x, numbers)) == 17
    explanation = scorer.explain(pa.Table.from_pandas(table, preserve_index=False), numbers)
    assert explanation.top(1)[17] == ["length"]


def test_explanations_are_those_of_the_scores_in_any_order(training, model, scorer):
    numbers = np.array([7, 3, 231, 8, 12])
    rows = training.take(pa.array(numbers))
    explanation = scorer.explain(rows, numbers)
    scores = scorer.scores(model.schema_.encode(rows), numbers)
    np.testing.assert_array_equal(explanation.score, scores)
    np.testing.assert_allclose(explanation.contribution_values.sum(axis=1), scores, rtol=1e-5, atol=1e-5)
    assert explanation.observed["length"].to_pylist() == rows["length"].to_pylist()


def test_a_sample_of_many_rows_is_enough(make_detector, training):
    model = make_detector(config={"reference.rows": 40}).fit(training)
    x = model.schema_.encode(training)
    scorer = CrossFit.fit(model, ((x[i : i + 20], np.arange(i, i + 20)) for i in range(0, 240, 20)))
    assert all(len(detector.reference) <= 50 for detector in scorer.detectors)


def test_few_rows_are_scored_with_the_model_itself(model, training):
    assert type(CrossFit.fit(model, [(model.schema_.encode(training)[:4], np.arange(4))])) is Scorer


def test_a_survey_asks_by_the_number_of_the_row(model, training, scorer):
    survey = Survey(model, 5, scorer=scorer)
    survey.add_all(training.to_batches(max_chunksize=37))
    scores = scorer.scores(model.schema_.encode(training), np.arange(240))
    np.testing.assert_array_equal(survey.top_numbers, np.argsort(-scores, kind="stable")[:5])
    np.testing.assert_array_equal(survey.explain_top().score, survey.top_scores)
