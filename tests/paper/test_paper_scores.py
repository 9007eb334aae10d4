"""The score of Eq. 8: its parts, contributions, missing values and explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from batches import batch, parts
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.paper.transport import scaled_plan, sinkhorn_potentials
from ptad.reference import Batch, Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import Reason
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Rows = NDArray[np.float64]
Mixed = tuple[Rows, Features]


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
        {"context": "batch"},
        {"scaling": "minmax", "clip": 1.0},
    ],
    ids=str,
)
def test_contributions_and_parts_add_up_to_the_value(fit_term: Fit, mixed: Mixed, fields: dict[str, Any]) -> None:
    x, features = mixed
    term = fit_term(x, features, **fields)
    value, of, masks, found = term.value(batch(x)), parts(term, x), term.masks(x), term.explain(batch(x))
    first = slice(term.scorer.chunk_rows)  # in the batch context, rows scored together have to stay together
    scores = term.scores(torch.from_numpy(x[first]))
    contributions, missing = (term.per_column(cells).numpy() for cells in (scores.contributions(), scores.missing))
    assert np.allclose(sum(of.values()), value, rtol=1e-6)
    assert np.allclose(contributions.sum(axis=1), value[first], rtol=1e-6)
    assert np.allclose(missing.sum(axis=1), of["missing"][first], rtol=1e-6)
    assert np.array_equal(found.value, value)
    assert found.shares.shape == (100, 4) and (found.shares >= 0).all()
    assert np.allclose(found.shares.sum(axis=1), 1.0, rtol=1e-12)
    assert np.allclose((found.shares * value[:, None])[first], contributions, rtol=1e-5, atol=1e-6)
    assert (of["basis"] > 0).any() == term.settings.scores_basis
    assert (of["prototype"] > 0).any() == term.settings.scores_prototypes
    assert (of["reconstruction"] > 0).all() and (of["missing"] >= 0).all()
    assert all(mask.shape == (100, 4) and ((mask >= 0) & (mask <= 1)).all() for mask in masks)
    n_basis = term.settings.n_basis if term.settings.scores_basis else 0
    assert scores.basis.index.min() >= (0 if n_basis else -1) and scores.basis.index.max() <= n_basis - 1
    n_prototypes = 5 if term.settings.scores_prototypes else 0
    assert scores.prototype.index.max() <= n_prototypes - 1


def test_value_equals_eq_8_by_hand(fit_term: Fit, rows: Rows) -> None:
    term = fit_term(rows, basis_score_weight=0.3, prototype_score_weight=0.7)
    network = term.scorer.network
    x = term.encoding.encode(rows[:6]).double()
    with torch.no_grad():
        reference = network(term.reference.double())
        output = network(x, reference.reference)
    expected = (output.reconstructions - x).square().sum(-1).mean(0).numpy()
    for weight, squared, solved in (
        (0.3, output.basis_squared, reference.basis_squared),
        (0.7, output.prototype_squared, reference.prototype_squared),
    ):
        g = sinkhorn_potentials(solved.sqrt(), 0.1, term.settings.sinkhorn_iterations)
        cost = squared.sqrt()
        product = (scaled_plan(cost, g, 0.1) * cost).numpy()
        expected += weight * product[np.arange(6), cost.numpy().argmin(1)]
    assert np.allclose(term.value(batch(rows[:6])), expected, rtol=1e-6)


@pytest.mark.parametrize(("scaling", "cost"), [("minmax", 1.0), ("standard", 100.0)])
def test_missing_values_raise_the_value(fit_term: Fit, rows: Rows, scaling: str, cost: float) -> None:
    """Never missing in training: a missing cell is as anomalous as a value at the far end of its column."""
    term = fit_term(rows, scaling=scaling)
    x = rows[:1].copy()
    x[0, 1] = np.nan
    assert parts(term, x)["missing"][0] == pytest.approx(cost, rel=1e-6)
    assert parts(term, rows)["missing"].max() == 0.0
    empty = np.full((1, 4), np.nan)
    assert parts(term, empty)["missing"][0] == pytest.approx(4.0 * cost, rel=1e-6)
    assert term.value(batch(empty))[0] > np.median(term.value(batch(rows)))


def test_a_cell_that_is_often_missing_costs_little(fit_term: Fit, rows: Rows) -> None:
    x = rows.copy()
    x[::2, 1] = np.nan
    assert np.allclose(parts(fit_term(x, scaling="minmax"), x)["missing"], 0.25, rtol=1e-6)


def test_reasons(fit_term: Fit, mixed: Mixed) -> None:
    x, features = mixed
    term = fit_term(x, features)
    row = np.array([[0.0, np.nan, 3.0, np.nan, 0.5], [0.0, 1e9, np.nan, np.nan, np.nan], [9.0, 1e9, 2.0, 0.5, 0.5]])
    found = term.explain(batch(row))
    usual, missing, unseen = int(Reason.UNUSUAL_VALUE), int(Reason.MISSING), int(Reason.UNSEEN_CATEGORY)
    assert found.reason.tolist() == [
        [usual, missing, unseen, missing],  # a column of several features is missing if the first one is
        [usual, usual, missing, missing],
        [usual, usual, usual, usual],
    ]
    assert (found.partner == -1).all() and found.partner.shape == (3, 4)
    assert found.shares[0].argmax() == 2  # ten units out


def test_expected_values_are_in_the_units_of_the_rows(fit_term: Fit, mixed: Mixed) -> None:
    x, features = mixed
    expected = fit_term(x, features, n_steps=60).explain(batch(x)).expected
    assert expected.shape == x.shape and np.isfinite(expected).all()
    assert np.abs(expected[:, 1] - 1e9).max() < 10.0  # a spread of 1 beside a value of 1e9
    assert set(expected[:, 2]) <= {0.0, 1.0, 2.0}


def test_explanation_of_a_planted_cell(term: NetworkTerm, rows: Rows) -> None:
    x = rows[:20].copy()
    x[:, 2] += 30.0
    assert (term.explain(batch(x)).shares.argmax(axis=1) == 2).sum() >= 17  # of 20, by a network of 20 steps


def test_far_rows_have_higher_values(term: NetworkTerm, rows: Rows) -> None:
    assert term.value(batch(np.array([[40.0, -40.0, 40.0, -40.0]])))[0] > term.value(batch(rows)).max()


def test_transform_is_the_p_space(term: NetworkTerm, rows: Rows) -> None:
    latent = term.transform(batch(rows))
    assert latent.shape == (100, 16) and len(np.unique(latent, axis=0)) > 50
    assert term.transform_names() == [f"latent{i}" for i in range(16)]
    distance = np.linalg.norm(latent[:, None] - term.basis_vectors, axis=2)
    assert np.array_equal(distance.argmin(axis=1), term.scores(torch.from_numpy(rows)).basis.index.numpy())


def test_atoms_for_plots(term: NetworkTerm, fit_term: Fit, rows: Rows) -> None:
    assert term.basis_vectors.shape == (5, 16) and term.basis_strength.shape == (5, 4)
    assert term.prototypes is not None and term.prototypes.shape == (5, 4)
    without = fit_term(rows, backbone="mlp")
    assert without.prototypes is None and without.basis_strength.shape == (5, 4)


def test_tensors_in_tensors_out(term: NetworkTerm, rows: Rows) -> None:
    given = torch.from_numpy(rows)
    found = term.explain(batch(given))
    plain = term.explain(batch(rows))
    for name in ("value", "shares", "reason", "partner", "expected"):
        assert isinstance(getattr(found, name), torch.Tensor)
        assert np.array_equal(getattr(found, name).numpy(), getattr(plain, name)), name
    assert torch.equal(term.value(batch(given)), torch.from_numpy(term.value(batch(rows))))
    assert torch.equal(term.transform(batch(given)), torch.from_numpy(term.transform(batch(rows))))


def test_a_batch_of_the_detector(term: NetworkTerm, rows: Rows) -> None:
    batch = Batch(rows, Reference(rows, Features.numeric(4), ReferenceSettings()))
    assert np.array_equal(term.value(batch), term.value(rows))
    assert np.array_equal(term.explain(batch).shares, term.explain(rows).shares)


def test_no_rows(term: NetworkTerm, fit_term: Fit) -> None:
    with pytest.raises(DataError, match="0 rows to score"):
        term.value(batch(np.empty((0, 4))))
    with pytest.raises(DataError, match="0 rows to train"):
        fit_term(np.empty((0, 4)))
