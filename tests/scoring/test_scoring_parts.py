"""The score of Eq. 8: its parts, their shares, missing values, and the sign of every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from ptad import PTAD
from ptad.transport import scaled_plan, sinkhorn_potentials

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
FAR = np.array([[40.0, -40.0, 40.0, -40.0]])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"projection_mask": "none"},
        {"projection_mask": "single"},
        {"projection_mask": "random"},
        {"backbone": "mlp"},
        {"backbone": "transformer", "basis_distance": "mse", "prototype_distance": "mse"},
        {"prototypes": False},
        {"basis_vectors": False},
        {"data_mask": False},
        {"matching": "product_min"},
        {"n_neighbours": 0},
    ],
    ids=str,
)
def test_contributions_and_parts_add_up_to_the_score(make_detector: Make, rows: Rows, fields: dict[str, Any]) -> None:
    x = rows.copy()
    x[::9, 2] = np.nan
    model = make_detector(**fields).fit(x)
    x += 0.1  # a training row finds itself among the retrieved rows, without any error
    score, parts, explanation = model.anomaly_score(x), model.score_parts(x), model.explain(x)
    assert np.allclose(sum(parts.values()), score, rtol=1e-6)
    assert np.allclose(explanation.contribution_values.sum(axis=1), score, rtol=1e-6)
    assert np.array_equal(explanation.score, score)
    shares = np.stack([explanation.parts.column(name).to_numpy() for name in parts])
    assert np.allclose(shares.sum(axis=0), 1.0, rtol=1e-6)
    config = model.config_
    assert set(parts) == {"reconstruction", "basis", "prototype", "missing", "neighbour", "local"}
    assert (parts["neighbour"] > 0).any() == (parts["local"] > 0).any() == (config.n_neighbours > 0)
    assert (parts["basis"] > 0).any() == config.scores_basis
    assert (parts["prototype"] > 0).any() == config.scores_prototypes
    assert (parts["reconstruction"] > 0).all() and (parts["missing"] >= 0).all()


def test_score_equals_eq_8_by_hand(make_detector: Make, rows: Rows) -> None:
    model = make_detector("paper", members="folds", basis_score_weight=0.3, prototype_score_weight=0.7).fit(rows)
    scorer, network = model.scorer_, model.scorer_.network
    x = torch.from_numpy(model.schema_.encode(rows[:6])).double().expand(2, -1, -1)
    expected = np.zeros((2, 6))
    with torch.inference_mode():
        reference = network(scorer.reference_rows)
        output = network(x, reference.reference)
    for e in range(2):
        errors = (output.reconstructions[e] - x[e]).square().sum(-1).mean(0).numpy()
        expected[e] += errors
        for kappa, squared, solved in (
            (0.3, output.basis_squared[e], reference.basis_squared[e]),
            (0.7, output.prototype_squared[e], reference.prototype_squared[e]),
        ):
            g = sinkhorn_potentials(solved.sqrt(), 0.1, network.config.sinkhorn_iterations)
            cost = squared.sqrt()
            product = (scaled_plan(cost, g, 0.1) * cost).numpy()
            expected[e] += kappa * product[np.arange(6), cost.numpy().argmin(1)]
    assert np.allclose(model.anomaly_score(rows[:6]), expected.mean(0), rtol=1e-6)


def test_missing_values_raise_the_score(make_detector: Make, rows: Rows) -> None:
    """Never missing in training: a missing cell is as strange as a value at the far end of its column."""
    detector = make_detector(n_neighbours=0).fit(rows)
    x = rows[:1].copy()
    x[0, 1] = np.nan
    parts = detector.score_parts(x)
    assert parts["missing"][0] == pytest.approx(1.0, rel=1e-6)
    assert detector.score_parts(rows)["missing"].max() == 0.0
    empty = np.full((1, 4), np.nan)
    assert detector.score_parts(empty)["missing"][0] == pytest.approx(4.0, rel=1e-6)
    assert detector.anomaly_score(empty)[0] > np.median(detector.anomaly_score(rows))


def test_a_cell_that_is_often_missing_costs_little(make_detector: Make, rows: Rows) -> None:
    x = rows.copy()
    x[::2, 1] = np.nan
    parts = make_detector(n_neighbours=0).fit(x).score_parts(x)
    assert np.allclose(parts["missing"], 0.25, rtol=1e-6)


def test_missing_values_raise_the_score_beside_retrieved_rows(detector: PTAD, rows: Rows) -> None:
    x = np.repeat(rows[:20], 2, axis=0)
    x[1::2] = np.nan
    missing = detector.score_parts(x)["missing"]
    assert (missing[::2] == 0.0).all() and (missing[1::2] > 1.0).all()  # in units of a normal row's error
    assert (detector.anomaly_score(x)[1::2] > np.quantile(detector.calibration_.scores, 0.9)).all()


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
