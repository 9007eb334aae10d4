"""Missing values of every kind, explanations of tables, and the sign of every method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from ptad import PTAD

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
FAR = np.array([[40.0, -40.0, 40.0, -40.0]])


def test_all_kinds_of_missing_are_alike(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    scores = []
    for nothing in (np.nan, None, pd.NA):
        row = frame.iloc[[1]].astype(object)
        row["b"] = nothing
        scores.append(frame_detector.anomaly_score(row)[0])
    assert scores[0] == scores[1] == scores[2]


def test_explanation_of_a_planted_cell(detector: PTAD, rows: Rows) -> None:
    x = rows[:20].copy()
    x[:, 2] += 30.0
    assert sum(top[0] == "x2" for top in detector.explain(x).top(1)) >= 17  # of 20, by a network of 20 steps


def test_explanation_of_a_frame_is_a_frame(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    explanation = frame_detector.explain(frame.head(5))
    for table in (explanation.contributions, explanation.observed, explanation.expected):
        assert isinstance(table, pd.DataFrame) and list(table.columns) == list(frame.columns) and len(table) == 5
    assert set(explanation.expected["colour"]) <= {"red", "green", "blue"}
    assert list(explanation.observed["colour"]) == list(frame["colour"][:5])
    assert np.allclose(explanation.contributions.sum(axis=1), frame_detector.anomaly_score(frame.head(5)), rtol=1e-6)
    assert ((explanation.masking_rate.to_numpy() >= 0) & (explanation.masking_rate.to_numpy() <= 1)).all()
    assert explanation.nearest["basis_vector"].between(0, 4).all()


# users ask: which sign is anomalous? One test per method. -------------------------------------------------------------


def test_sign_of_anomaly_score(detector: PTAD, rows: Rows) -> None:
    assert detector.anomaly_score(FAR)[0] > detector.anomaly_score(rows).max()


def test_sign_of_score_samples(detector: PTAD, rows: Rows) -> None:
    assert detector.score_samples(FAR)[0] < detector.score_samples(rows).min()
    assert np.array_equal(detector.score_samples(rows), -detector.anomaly_score(rows))


def test_sign_of_decision_function(detector: PTAD, rows: Rows) -> None:
    assert detector.decision_function(FAR)[0] < 0 < np.median(detector.decision_function(rows))
    assert np.array_equal(detector.decision_function(rows), detector.score_samples(rows) - detector.offset_)


def test_sign_of_predict(detector: PTAD, rows: Rows) -> None:
    assert detector.predict(FAR).tolist() == [-1]
    assert (detector.predict(rows) == 1).mean() > 0.9


def test_sign_of_p_value(detector: PTAD, rows: Rows) -> None:
    assert detector.p_value(FAR)[0] == pytest.approx(1 / 101)
    assert np.median(detector.p_value(rows)) > 0.3


def test_sign_of_score_parts(detector: PTAD, rows: Rows) -> None:
    assert detector.score_parts(FAR)["reconstruction"][0] > detector.score_parts(rows)["reconstruction"].max()


def test_sign_of_explain(detector: PTAD, rows: Rows) -> None:
    assert detector.explain(FAR).contribution_values.sum() > detector.explain(rows).contribution_values.sum(1).max()


def test_transform_is_the_p_space(detector: PTAD, rows: Rows) -> None:
    latent = detector.transform(rows)
    assert latent.shape == (100, 16) and latent.dtype == np.float32
    assert len(np.unique(latent, axis=0)) > 50
