"""The mathematics of entropic transport, against POT and against its own definition."""

from __future__ import annotations

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from ptad.paper.transport import euclidean_cost, matched_cost, scaled_plan, sinkhorn_potentials


def make_cost(n_rows: int, n_atoms: int, n_dimensions: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n_rows, n_dimensions, generator=generator, dtype=torch.float64)
    atoms = torch.randn(n_atoms, n_dimensions, generator=generator, dtype=torch.float64)
    return euclidean_cost((rows[:, None] - atoms[None]).square().sum(-1))


def solve(cost: torch.Tensor, entropy_weight: float, n_iterations: int) -> torch.Tensor:
    return scaled_plan(cost, sinkhorn_potentials(cost, entropy_weight, n_iterations), entropy_weight)


def pot_plan(cost: torch.Tensor, entropy_weight: float, n_iterations: int) -> np.ndarray:
    """Return POT's plan after as many iterations as ours.

    POT starts with the other half-step; given our first row potentials it walks through the same iterates, so the two
    must agree long before they have converged.
    """
    n_rows, n_atoms = cost.shape
    first = -np.log(n_rows) - logsumexp(-cost.numpy() / entropy_weight, axis=1)
    plan = ot.bregman.sinkhorn_log(
        np.full(n_rows, 1 / n_rows),
        np.full(n_atoms, 1 / n_atoms),
        cost.numpy(),
        entropy_weight,
        numItermax=n_iterations,
        stopThr=0.0,
        warn=False,
        warmstart=(first, np.zeros(n_atoms)),
    )
    return np.asarray(plan) * n_rows


def test_euclidean_cost_is_the_distance_and_differentiable_at_zero() -> None:
    squared = torch.tensor([9.0, 2.25, 0.0], dtype=torch.float64, requires_grad=True)
    cost = euclidean_cost(squared)
    assert torch.allclose(cost, torch.tensor([3.0, 1.5, 1e-6], dtype=torch.float64))
    cost.sum().backward()
    assert squared.grad is not None and torch.isfinite(squared.grad).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.floats(0.3, 5.0), st.integers(0, 99))
def test_plan_marginals(n_rows: int, n_atoms: int, entropy_weight: float, seed: int) -> None:
    plan = solve(make_cost(n_rows, n_atoms, seed=seed), entropy_weight, 300)
    assert torch.allclose(plan.sum(-1), torch.ones(n_rows, dtype=torch.float64), atol=1e-12)
    columns = plan.sum(0) / n_rows
    assert torch.allclose(columns, torch.full_like(columns, 1 / n_atoms), atol=1e-3)
    assert (plan >= 0).all()


@pytest.mark.parametrize("n_iterations", [1, 30, 300])
@pytest.mark.parametrize("entropy_weight", [1.0, 0.1, 0.01])
def test_sinkhorn_equals_pot(entropy_weight: float, n_iterations: int) -> None:
    cost = make_cost(50, 5)
    ours, theirs = solve(cost, entropy_weight, n_iterations), pot_plan(cost, entropy_weight, n_iterations)
    assert np.abs(ours.numpy() - theirs).max() < 1e-10


@pytest.mark.parametrize("entropy_weight", [0.1, 0.001, 1e-5])
def test_sinkhorn_equals_pot_in_1000_dimensions_at_a_tiny_lambda(entropy_weight: float) -> None:
    cost = make_cost(20, 4, n_dimensions=1000)
    kernel = torch.exp(-cost / entropy_weight)
    assert float(kernel.max()) < 1e-150  # the plain algorithm would divide by (next to) nothing
    ours, theirs = solve(cost, entropy_weight, 300), pot_plan(cost, entropy_weight, 300)
    assert torch.isfinite(ours).all()
    assert torch.allclose(ours.sum(-1), torch.ones(20, dtype=torch.float64), atol=1e-12)
    # potentials are of the size of C / lambda: what is lost is their last digits
    assert np.abs(ours.numpy() - theirs).max() < 1e-9 / entropy_weight


def test_converged_plan_is_the_cheapest_at_a_tiny_lambda() -> None:
    """Against exact transport: one half of a balanced problem whose solution is a permutation."""
    cost = make_cost(5, 5, n_dimensions=2)
    exact = ot.emd2(np.full(5, 0.2), np.full(5, 0.2), cost.numpy())
    plan = solve(cost, 0.002, 20000) / 5
    assert abs(float((plan * cost).sum()) - exact) < 0.02 * exact


def test_default_number_of_iterations_is_close_to_the_solution() -> None:
    cost = make_cost(200, 5)
    assert torch.allclose(solve(cost, 0.1, 30).mean(0), solve(cost, 0.1, 2000).mean(0), atol=0.05)


def test_a_batch_of_problems_is_solved_as_each_alone() -> None:
    cost = torch.stack([make_cost(30, 4, seed=s) for s in range(3)])
    together = solve(cost, 0.1, 30)
    for i in range(3):
        assert torch.allclose(together[i], solve(cost[i], 0.1, 30), rtol=0, atol=1e-14)


def test_frozen_potentials_reproduce_the_solved_plan_on_the_reference_rows() -> None:
    cost = make_cost(40, 5)
    g = sinkhorn_potentials(cost, 0.1, 300)
    theirs = pot_plan(cost, 0.1, 300)
    # One row at a time, as an unseen row would be scored.
    alone = torch.cat([scaled_plan(cost[i : i + 1], g, 0.1) for i in range(40)])
    assert np.abs(alone.numpy() - theirs).max() < 1e-10


def test_scaled_plan_closed_form_by_hand() -> None:
    cost = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    g = torch.tensor([0.0, 3.0], dtype=torch.float64)
    weights = np.exp([0.0 - 1.0 / 0.5, 3.0 - 2.0 / 0.5])
    assert np.allclose(scaled_plan(cost, g, 0.5).numpy(), weights / weights.sum(), atol=1e-15)


def test_matching_rules() -> None:
    cost = torch.tensor([[1.0, 4.0], [3.0, 2.0]], dtype=torch.float64)
    plan = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
    value, index = matched_cost(cost, plan, "nearest")
    assert index.tolist() == [0, 1] and np.allclose(value, [0.9, 1.0])
    value, index = matched_cost(cost, plan, "product_min")
    assert index.tolist() == [1, 1] and np.allclose(value, [0.4, 1.0])


def test_product_min_prefers_the_farthest_atom_at_a_small_lambda() -> None:
    """PAPER-04: the reason for ``nearest``."""
    cost = make_cost(100, 5, n_dimensions=16)
    plan = solve(cost, 0.1, 30)
    literal, nearest = matched_cost(cost, plan, "product_min"), matched_cost(cost, plan, "nearest")
    assert float(literal[0].mean()) < 0.01 * float(nearest[0].mean())  # it measures next to nothing
    assert (nearest[1] == cost.argmin(-1)).all()
    assert float((literal[1] == nearest[1]).double().mean()) < 0.05


def test_gradient_can_flow_through_the_plan() -> None:
    cost = make_cost(10, 3).requires_grad_()
    solve(cost, 0.5, 10)[0, 0].backward()
    assert cost.grad is not None and float(cost.grad.abs().max()) > 0.0
