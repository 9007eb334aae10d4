"""Local reconstruction solves the constrained least squares that its description names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tables_for_terms import MIXED, Fitted, fit_term, mixed_rows

from ptad.reference import ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import Reason
from ptad.terms.local_reconstruction import RESIDUAL_RIDGE, LocalReconstructionSettings

Matrix = NDArray[np.float64]
BY_VALUE = {"rank_weight": 0.0, "neighbours": 12}  # without ranks, points are affine in the rows


def fitted(rows: Matrix, features: Features | None = None, *, reference: Any = None, **changes: Any) -> Fitted:
    settings = LocalReconstructionSettings(**changes)
    kept = ReferenceSettings(**(reference or {}))
    return fit_term(settings, rows, features or Features.numeric(rows.shape[1]), reference=kept)


def direct(fit: Fitted, rows: Matrix) -> tuple[Matrix, Matrix]:
    """Solve min |w D|^2 + lambda |w|^2 with sum(w) = 1 by its Lagrangian; return the minimum and the weights."""
    settings, reference = fit.term.settings, fit.reference
    points, queries = reference.coordinates(reference.rows), reference.coordinates(rows)
    minima, weights = [], np.zeros((len(rows), len(points)))
    for i, query in enumerate(queries):
        squared = ((points - query) ** 2).sum(axis=1)
        near = np.argsort(squared, kind="stable")[: reference.settings.neighbours]
        d, k = points[near] - query, len(near)
        penalty = settings.ridge * (d**2).sum() / k + settings.floor
        normal, ones = 2.0 * (d @ d.T + penalty * np.eye(k)), np.ones((k, 1))
        w = np.linalg.solve(np.block([[normal, ones], [ones.T, np.zeros((1, 1))]]), np.append(np.zeros(k), 1.0))[:k]
        minima.append(((w @ d) ** 2).sum() + penalty * (w**2).sum())
        weights[i, near] = w
    return np.array(minima), weights


@pytest.mark.parametrize("ridge", [0.0, 0.03, 3.0])
@pytest.mark.parametrize("neighbours", [1, 5, 32])
def test_the_value_is_that_of_a_direct_solve(ridge: float, neighbours: int) -> None:
    fit = fitted(mixed_rows(150), MIXED, ridge=ridge, reference={"neighbours": neighbours})
    rows = mixed_rows(40, 1)
    assert np.allclose(fit.value(rows), np.log(direct(fit, rows)[0]), rtol=1e-7, atol=1e-7)


def plane(n: int, seed: int) -> Matrix:
    """Rows of a plane in five columns."""
    mixing = np.array([[1.0, 0.0, 0.5, -1.0, 2.0], [0.0, 1.0, 0.5, 1.0, -1.0]])
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, 2)) @ mixing


def test_a_row_inside_the_affine_hull_is_rebuilt_exactly_at_ridge_0() -> None:
    """Nothing is left but the floor, by which "no distance" is told from the logarithm of 0."""
    floor = 1e-9
    term = fitted(plane(200, 0), ridge=0.0, floor=floor, reference=BY_VALUE)
    rows = 0.8 * plane(50, 1)
    assert (term.value(rows) <= np.log(floor)).all()  # floor * |w|^2, and |w|^2 <= 1 inside the hull
    assert term.transform(rows).max() < 1e-4


def test_a_row_off_the_affine_hull_misses_it_by_its_distance() -> None:
    train = plane(200, 0)
    width = np.ptp(train, axis=0)
    term = fitted(train, ridge=0.0, floor=1e-9, reference=BY_VALUE)
    # the normal of the plane in units of the range
    basis = np.linalg.svd((train[1:] - train[0]) / width)[2]
    normal = basis[2]
    rows = 0.5 * plane(20, 1) + 0.05 * normal * width
    assert np.allclose(term.value(rows), np.log(0.05**2), atol=1e-3)
    assert np.allclose(term.transform(rows), 0.05 * np.abs(normal), atol=1e-3)


def test_more_ridge_never_lowers_the_value() -> None:
    rows, train = mixed_rows(30, 1), mixed_rows(150)
    values = [fitted(train, MIXED, ridge=r).value(rows) for r in (0.0, 0.01, 0.3, 3.0)]
    assert all((a <= b + 1e-12).all() for a, b in pairwise(values))


def test_a_duplicate_of_a_reference_row_is_near() -> None:
    """No rule looks at whether a row is a training row: one that equals a reference row is as near as can be."""
    train = mixed_rows(200)
    term = fitted(train, MIXED)
    assert np.median(term.value(train)) < np.median(term.value(mixed_rows(200, 1)))
    assert np.array_equal(term.value(train[:5].copy()), term.value(train)[:5])


def test_the_reconstruction_is_the_weighted_mean_within_the_range_of_the_neighbours() -> None:
    train = np.random.default_rng(0).normal(size=(120, 3))
    term = fitted(train, ridge=RESIDUAL_RIDGE)  # explanations hold the reconstruction firmly whatever the term's ridge
    rows = np.random.default_rng(1).normal(size=(20, 3))
    _, weights = direct(term, rows)
    used = [train[w != 0.0] for w in weights]
    low, high = np.array([u.min(axis=0) for u in used]), np.array([u.max(axis=0) for u in used])
    assert np.allclose(term.explain(rows).expected, np.clip(weights @ train, low, high))


def test_shares_follow_the_column_that_was_changed() -> None:
    train = np.random.default_rng(0).normal(size=(300, 5))
    rows = np.random.default_rng(1).normal(size=(40, 5)) * 0.3
    rows[np.arange(40), np.arange(40) % 5] += 6.0
    assert (fitted(train).explain(rows).shares.argmax(axis=1) == np.arange(40) % 5).all()


def test_reasons_of_missing_and_unseen_cells() -> None:
    rows = mixed_rows(3, 1)
    rows[0] = np.nan
    rows[1, [4, 6]] = [4, 2]
    reason = fitted(mixed_rows(100), MIXED).explain(rows).reason
    assert (reason[0] == Reason.MISSING).all()
    assert (reason[1, [2, 4]] == Reason.UNSEEN_CATEGORY).all()


def test_names_of_the_residuals() -> None:
    assert fitted(mixed_rows(50), MIXED).term.transform_names() == [f"residual_{{{i}}}" for i in range(5)]
