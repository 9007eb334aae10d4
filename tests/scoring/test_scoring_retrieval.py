"""Reconstruction from retrieved rows, against a plain second implementation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptad import PTAD
from ptad.scoring import Retrieval
from ptad.scoring.retrieval import column_weights

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
RIDGE = 0.3


def make_bank(n_rows: int = 40) -> torch.Tensor:
    rng = np.random.default_rng(0)
    bank = rng.uniform(size=(n_rows, 4))
    bank[:, 3] = rng.integers(0, 2, size=n_rows)  # two-valued
    return torch.from_numpy(bank)


def plain(bank: Rows, weight: Rows, row: Rows, k: int) -> tuple[Rows, Rows]:
    """Return the unscaled squared errors of the nearest row and of the local affine reconstruction."""
    seen = ~np.isnan(row)
    difference = np.where(seen, (bank - np.nan_to_num(row)) * weight, 0.0)
    near = difference[np.argsort((difference**2).sum(1), kind="stable")[:k]]
    gram = near @ near.T
    gram += (RIDGE * np.trace(gram) / k + 1e-12) * np.eye(k)
    solved = np.linalg.solve(gram, np.ones(k))
    return near[0] ** 2, (solved / solved.sum() @ near) ** 2


@pytest.mark.parametrize("missing", [False, True])
def test_errors_equal_the_plain_implementation(missing: bool) -> None:
    retrieval = Retrieval(make_bank(), 5, RIDGE)
    x = torch.from_numpy(np.random.default_rng(1).uniform(-0.5, 1.5, size=(12, 4)))
    if missing:
        x[::3, 1] = float("nan")
        x[5] = float("nan")
    found = retrieval(x)
    for i in range(12):
        neighbour, local = plain(retrieval.bank.numpy(), retrieval.weight.numpy(), x[i].numpy(), 5)
        assert np.allclose(found.neighbour[i] * retrieval.neighbour_unit, neighbour, atol=1e-12)
        assert np.allclose(found.local[i] * retrieval.local_unit, local, atol=1e-9)


def test_units_are_the_mean_errors_of_rows_that_cannot_find_themselves() -> None:
    bank = make_bank()
    retrieval = Retrieval(bank, 5, RIDGE)
    rows = bank.numpy()
    errors = [
        [part.sum() for part in plain(np.delete(rows, i, axis=0), retrieval.weight.numpy(), rows[i], 5)]
        for i in range(len(rows))
    ]
    assert (retrieval.neighbour_unit, retrieval.local_unit) == pytest.approx(np.mean(errors, axis=0), rel=1e-9)


def test_two_valued_columns_weigh_as_much_as_the_others_deviate() -> None:
    bank = make_bank()
    weight, two_valued = column_weights(bank)
    expected = bank[:, :3].std(dim=0, correction=0).mean()
    assert torch.allclose(weight.double(), torch.tensor([1.0, 1.0, 1.0, float(expected)], dtype=torch.float64))
    assert two_valued == pytest.approx(float(expected))
    assert column_weights(bank[:, 3:])[1] == 1.0  # nothing else to compare with


def test_ties_are_broken_by_the_row_number() -> None:
    bank = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]] * 5, dtype=torch.float64)
    retrieval = Retrieval(bank, 2, RIDGE)
    x = torch.tensor([[0.25, 0.0], [0.75, 1.0]], dtype=torch.float64)
    assert retrieval._nearest(x, torch.ones_like(x)).tolist() == [[0, 2], [1, 3]]


def test_a_row_does_not_vouch_for_itself_but_a_twin_does() -> None:
    bank = make_bank()
    retrieval = Retrieval(bank, 5, RIDGE)
    assert float(retrieval(bank).neighbour.sum(dim=1).min()) > 0.0
    assert float(retrieval(bank).neighbour.sum(dim=1).mean()) == pytest.approx(1.0)  # as new rows: in their own unit
    with_twin = Retrieval(torch.cat([bank, bank[:1]]), 5, RIDGE)
    errors = with_twin(bank).neighbour.sum(dim=1)
    assert float(errors[0]) == 0.0 and float(errors[1:].min()) > 0.0


@pytest.mark.parametrize("n_rows", [1, 2, 3, 9])
def test_small_banks(n_rows: int) -> None:
    retrieval = Retrieval(make_bank()[:n_rows], 8, RIDGE)
    found = retrieval(make_bank()[20:25])
    assert retrieval.n_neighbours == max(1, n_rows // 4)
    assert torch.isfinite(found.neighbour).all() and torch.isfinite(found.local).all()


def test_calibration_rows_are_judged_as_if_the_bank_did_not_hold_them(make_detector: Make, rows: Rows) -> None:
    """Otherwise a calibration row would find itself, and its score would say nothing about new rows."""
    model = make_detector(n_steps=3, network_weight=0.0).fit(rows)
    bank = model.scorer_.retrieval
    assert len(bank.bank) == len(rows)
    encoded = model.schema_.encode(rows)
    for i in (0, 17, 60):
        others = bank.rows[(bank.rows != torch.from_numpy(encoded[i])).any(dim=1)]
        assert len(others) == len(rows) - 1
        without = Retrieval(others, 16, model.config_.neighbour_ridge, bank.units)
        found = without(torch.from_numpy(encoded[i : i + 1]).double())
        expected = (found.neighbour + found.local).sum()
        assert model.held_out_scores_[i] == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("n_bank", [5, 32, 33, 500])
def test_the_search_by_blocks_finds_what_sorting_all_distances_finds(n_bank: int) -> None:
    generator = torch.Generator().manual_seed(n_bank)
    bank = torch.randint(0, 4, (n_bank, 3), generator=generator).double() / 3  # many ties
    x = torch.rand(40, 3, generator=generator, dtype=torch.float64)
    retrieval = Retrieval(bank, 8, RIDGE)
    weighted = x * retrieval.weight
    squared = (weighted.unsqueeze(1) - bank * retrieval.weight).square().sum(dim=-1)
    grid = (squared * 2.0**30).round()
    expected = grid.sort(dim=1, stable=True).indices[:, : retrieval.n_neighbours]
    assert torch.equal(retrieval._nearest(weighted, None), expected)
    gappy = x.clone()
    gappy[::2, 1] = torch.nan
    seen = (~gappy.isnan()).double()
    assert torch.equal(retrieval._nearest(weighted, torch.ones_like(x)), expected)
    found = retrieval(gappy)
    assert (found.neighbour[::2, 1] == 0).all() and torch.isfinite(found.local).all() and (seen.sum() < x.numel())


def test_the_bank_is_bounded(make_detector: Make, rows: Rows) -> None:
    model = make_detector(n_steps=3, n_bank=30).fit(rows)
    assert len(model.scorer_.retrieval.bank) == 30


def test_the_network_enters_with_its_weight(make_detector: Make, rows: Rows) -> None:
    light, heavy = (make_detector(n_steps=3, network_weight=w).fit(rows).score_parts(rows) for w in (0.25, 1.0))
    for name in ("reconstruction", "basis", "prototype"):
        assert np.allclose(4.0 * light[name], heavy[name], rtol=1e-5)
    assert np.array_equal(light["neighbour"], heavy["neighbour"])


def test_the_smallest_network_weight_is_usable(make_detector: Make, rows: Rows) -> None:
    """Either 0 is refused in scikit-learn's wording, or it works."""
    try:
        model = make_detector(n_steps=3, network_weight=0.0).fit(rows)
    except ValueError as error:
        assert "The 'network_weight' parameter of PTAD must be" in str(error)
    else:
        assert np.isfinite(model.anomaly_score(rows)).all()
