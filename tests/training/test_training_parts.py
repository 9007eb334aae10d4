"""Loss, schedule, optimiser and the plan of members, each against a computation by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_optimizer import Lamb, Lookahead

from ptad.config import make_config
from ptad.model import Network
from ptad.training import plan_members
from ptad.training.loss import PARTS, cell_errors, loss_parts
from ptad.training.optimizer import Optimizer
from ptad.training.schedule import learning_rates
from ptad.transport import scaled_plan, sinkhorn_potentials

MakeNetwork = Callable[..., Network]


def draw(n_rows: int = 9, n_features: int = 4) -> torch.Tensor:
    return torch.randn(1, n_rows, n_features, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


# loss -----------------------------------------------------------------------------------------------------------------


def by_hand(network: Network, x: torch.Tensor) -> dict[str, float]:
    """Compute the loss parts in numpy, row by row."""
    output, config = network(x), network.config
    rows, n = x[0].numpy(), x.shape[1]
    reconstructions = output.reconstructions[0].detach().numpy()
    n_branches = len(reconstructions)
    parts = {"basis": 0.0, "prototype": 0.0, "orthogonality": 0.0}
    parts["reconstruction"] = sum(
        ((rows[i] - reconstructions[k][i]) ** 2).sum() / n_branches for i in range(n) for k in range(n_branches)
    ) / float(n)

    def transported(vectors: np.ndarray, atoms: np.ndarray, distance: str) -> float:
        cost = np.sqrt(((vectors[:, None] - atoms[None]) ** 2).sum(-1))
        if distance == "mse":
            return float((cost.min(1) ** 2).mean() / vectors.shape[1])
        tensor = torch.from_numpy(cost)
        g = sinkhorn_potentials(tensor, config.entropy_weight, config.sinkhorn_iterations)
        product = scaled_plan(tensor, g, config.entropy_weight).numpy() * cost
        best = product.min(1) if config.matching == "product_min" else product[np.arange(n), cost.argmin(1)]
        return float(best.mean())

    if config.scores_basis:
        basis = network.projection.basis_vectors[0].detach().numpy()
        parts["basis"] = transported(output.latent[0].detach().numpy(), basis, config.basis_distance)
        unit = basis / np.linalg.norm(basis, axis=1, keepdims=True)
        if config.orthogonality:
            parts["orthogonality"] = float(((unit @ unit.T - np.eye(len(unit))) ** 2).sum())
    if network.prototypes is not None and output.association is not None:
        atoms = network.prototypes.prototypes[0].detach().numpy()
        parts["prototype"] = transported(output.association[0].detach().numpy(), atoms, config.prototype_distance)
    parts["total"] = (
        parts["reconstruction"]
        + config.basis_loss_weight * parts["basis"]
        + config.prototype_loss_weight * parts["prototype"]
        + config.orthogonality_weight * parts["orthogonality"]
    )
    return parts


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"matching": "product_min"},
        {"basis_distance": "mse", "prototype_distance": "mse"},
        {"basis_loss_weight": 2.0, "prototype_loss_weight": 3.0, "orthogonality_weight": 5.0},
        {"projection_mask": "single"},
        {"projection_mask": "none"},
        {"projection_mask": "random"},
        {"orthogonality": False},
        {"basis_vectors": False},
        {"prototypes": False},
        {"backbone": "transformer"},
        {"backbone": "mlp"},
    ],
    ids=str,
)
def test_loss_parts_by_hand(make_network: MakeNetwork, fields: dict[str, Any]) -> None:
    network, x = make_network(**fields), draw()
    found = loss_parts(network, network(x), x)[:, 0]
    expected = by_hand(network, x)
    assert PARTS == ("total", "reconstruction", "basis", "prototype", "orthogonality")
    for name, value in zip(PARTS, found.tolist(), strict=True):
        assert value == pytest.approx(expected[name], rel=1e-10, abs=1e-12), name


def test_the_papers_weights(make_network: MakeNetwork) -> None:
    network, x = make_network(), draw()
    total, *parts = loss_parts(network, network(x), x)[:, 0].tolist()
    assert total == pytest.approx(parts[0] + 1.0 * parts[1] + 1.0 * parts[2] + 0.1 * parts[3], rel=1e-12)
    assert all(part > 0 for part in parts)


def test_missing_cells_have_no_error(make_network: MakeNetwork) -> None:
    network, x = make_network(), draw().clone()
    x[0, 3, 2] = float("nan")
    errors = cell_errors(network(x), x).detach()
    assert float(errors[0, 3, 2]) == 0.0 and torch.isfinite(errors).all() and int((errors == 0).sum()) == 1


@pytest.mark.parametrize("through_plan", [False, True])
def test_plan_gradient(make_network: MakeNetwork, through_plan: bool) -> None:
    """Without it the gradient of the basis loss is that of a constant plan."""
    network, x = make_network(plan_gradient=through_plan, entropy_weight=1.0), draw()
    loss_parts(network, network(x), x)[2, 0].backward()
    grad = network.projection.basis_vectors.grad
    constant = make_network(entropy_weight=1.0)
    output = constant(x)
    cost = output.basis_squared.sqrt()
    plan = scaled_plan(cost.detach(), sinkhorn_potentials(cost.detach(), 1.0, network.config.sinkhorn_iterations), 1.0)
    chosen = cost.argmin(-1, keepdim=True)
    (plan * cost).gather(-1, chosen).mean().backward()
    assert grad is not None and constant.projection.basis_vectors.grad is not None
    assert torch.allclose(grad, constant.projection.basis_vectors.grad, atol=1e-10) is not through_plan


# schedule -------------------------------------------------------------------------------------------------------------


def test_schedule_rises_linearly_then_falls_as_a_cosine() -> None:
    rates = learning_rates(2.0, 100, 10)
    assert len(rates) == 100 and rates.dtype == np.float32
    assert np.allclose(np.diff(rates[:11]), 2.0 / 11, atol=1e-6)
    assert rates[10] == 2.0 == rates.max()
    assert np.allclose(rates[10:], [1.0 + math.cos(math.pi * i / 90) for i in range(90)], atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.integers(0, 400))
def test_schedule_of_any_length(n_steps: int, warmup: int) -> None:
    rates = learning_rates(1.0, n_steps, warmup)
    assert len(rates) == n_steps and (rates > 0).all() and rates.max() == 1.0
    assert int(rates.argmax()) == min(warmup, n_steps // 2)


# optimiser ------------------------------------------------------------------------------------------------------------


def run_ours(optimizer: str, start: torch.Tensor, gradients: list[torch.Tensor], **fields: Any) -> torch.Tensor:
    parameter = torch.nn.Parameter(start.clone())
    ours = Optimizer([parameter], make_config("paper", {"optimizer": optimizer, **fields}), torch.device("cpu"))
    for step, gradient in enumerate(gradients):
        ours.rate.fill_(0.01 * (step + 1))
        parameter.grad = gradient.clone()
        ours.step(step % ours.cycle)
    return parameter.detach()


def make_gradients(n: int = 14) -> tuple[torch.Tensor, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(1, 6, 3, generator=generator)
    return start, [torch.randn(1, 6, 3, generator=generator) for _ in range(n)]


def test_lamb_with_lookahead_equals_the_package_used_directly() -> None:
    start, gradients = make_gradients()
    parameter = torch.nn.Parameter(start.clone())
    # adam_debias=True is the package's word for: the first moment is not corrected for its bias
    lamb = Lamb([parameter], lr=0.01, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, adam_debias=True)
    direct = Lookahead(lamb, k=6, alpha=0.5)
    for step, gradient in enumerate(gradients):
        lamb.param_groups[0]["lr"] = 0.01 * (step + 1)
        parameter.grad = gradient.clamp(-1.0, 1.0)  # element-wise, as NPT's authors clip
        direct.step()
    found = run_ours("lamb", start, gradients)
    assert torch.allclose(found, parameter.detach(), atol=1e-6) and not torch.allclose(found, start, atol=1e-2)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_lamb_with_lookahead_by_hand(scale: float) -> None:
    """PAPER-08: no bias correction, the weight norm clamped to at most 10, Lookahead every 6 steps by one half."""
    start, gradients = make_gradients()
    weight = slow = scale * start.numpy().astype(np.float64)
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients):
        g = np.clip(gradient.numpy().astype(np.float64), -1.0, 1.0)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        move = first / (np.sqrt(second) + 1e-6)
        trust = min(float(np.linalg.norm(weight)), 10.0) / (np.linalg.norm(move) + 1e-6)
        weight = weight - 0.01 * (step + 1) * trust * move
        if step % 6 == 5:
            weight = slow = slow + 0.5 * (weight - slow)
    found = run_ours("lamb", scale * start, gradients).numpy()
    assert np.allclose(found, weight, rtol=1e-4, atol=1e-5 * scale)


def test_adamw_equals_torch_used_directly() -> None:
    start, gradients = make_gradients()
    parameter = torch.nn.Parameter(start.clone())
    direct = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    for step, gradient in enumerate(gradients):
        direct.param_groups[0]["lr"] = 0.01 * (step + 1)
        parameter.grad = gradient.clamp(-0.5, 0.5)
        direct.step()
    found = run_ours("adamw", start, gradients, weight_decay=0.1, gradient_clip=0.5)
    assert torch.allclose(found, parameter.detach(), atol=1e-6)


def test_lamb_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from ptad.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "pytorch_optimizer", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ptad\[paper\]'"):
        Optimizer([torch.nn.Parameter(torch.ones(2))], make_config("paper"), torch.device("cpu"))


# plan -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 60),
    st.sampled_from(["auto", "cross", "split", "none"]),
    st.sampled_from(["single", "folds"]),
    st.sampled_from([None, 3]),
    st.integers(2, 6),
)
def test_no_member_judges_what_it_learned_from(
    n_rows: int, calibration: str, members: str, patience: int | None, n_folds: int
) -> None:
    fields = {"calibration": calibration, "members": members, "patience": patience, "n_folds": n_folds}
    plan = plan_members(n_rows, make_config("default", fields), np.random.default_rng(0))
    assert any(member.scores for member in plan)
    for member in plan:
        assert len(member.train) >= 1
        assert not set(member.train) & set(member.calibration)
        assert not set(member.train) & set(member.validation)
        assert set(member.train) | set(member.calibration) | set(member.validation) <= set(range(n_rows))
    judged = np.concatenate([member.calibration for member in plan])
    assert len(set(judged)) == len(judged)
    if calibration in ("auto", "cross"):
        assert len(judged) == n_rows  # no row is lost to calibration


def test_auto_changes_from_cross_to_split() -> None:
    config = make_config("default", {"cross_below": 50})
    assert len(plan_members(49, config, np.random.default_rng(0))) == config.n_folds
    split = plan_members(50, config, np.random.default_rng(0))
    assert len(split) == 1 and len(split[0].calibration) == 10
