"""The training loss, against a computation by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ptad.paper.loss import LOSS_PARTS, cell_errors, loss_parts
from ptad.paper.network import Network
from ptad.paper.transport import scaled_plan, sinkhorn_potentials

MakeNetwork = Callable[..., Network]


def draw(n_rows: int = 9, n_features: int = 4) -> torch.Tensor:
    return torch.randn(n_rows, n_features, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def by_hand(network: Network, x: torch.Tensor) -> dict[str, float]:
    """Compute the loss parts in numpy, row by row."""
    output, settings = network(x), network.settings
    rows, n = x.numpy(), len(x)
    reconstructions = output.reconstructions.detach().numpy()
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
        g = sinkhorn_potentials(tensor, settings.entropy_weight, settings.sinkhorn_iterations)
        product = scaled_plan(tensor, g, settings.entropy_weight).numpy() * cost
        best = product.min(1) if settings.matching == "product_min" else product[np.arange(n), cost.argmin(1)]
        return float(best.mean())

    if settings.scores_basis:
        basis = network.projection.basis_vectors.detach().numpy()
        parts["basis"] = transported(output.latent.detach().numpy(), basis, settings.basis_distance)
        unit = basis / np.linalg.norm(basis, axis=1, keepdims=True)
        if settings.orthogonality:
            parts["orthogonality"] = float(((unit @ unit.T - np.eye(len(unit))) ** 2).sum())
    if network.prototypes is not None and output.association is not None:
        atoms = network.prototypes.prototypes.detach().numpy()
        parts["prototype"] = transported(output.association.detach().numpy(), atoms, settings.prototype_distance)
    parts["total"] = (
        parts["reconstruction"]
        + settings.basis_loss_weight * parts["basis"]
        + settings.prototype_loss_weight * parts["prototype"]
        + settings.orthogonality_weight * parts["orthogonality"]
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
    found = loss_parts(network, network(x), x)
    expected = by_hand(network, x)
    assert LOSS_PARTS == ("total", "reconstruction", "basis", "prototype", "orthogonality")
    for name, value in zip(LOSS_PARTS, found.tolist(), strict=True):
        assert value == pytest.approx(expected[name], rel=1e-10, abs=1e-12), name


def test_the_papers_weights(make_network: MakeNetwork) -> None:
    network, x = make_network(), draw()
    total, *parts = loss_parts(network, network(x), x).tolist()
    assert total == pytest.approx(parts[0] + 1.0 * parts[1] + 1.0 * parts[2] + 0.1 * parts[3], rel=1e-12)
    assert all(part > 0 for part in parts)


def test_missing_cells_have_no_error(make_network: MakeNetwork) -> None:
    network, x = make_network(), draw()
    x[3, 2] = float("nan")
    errors = cell_errors(network(x), x).detach()
    assert float(errors[3, 2]) == 0.0 and torch.isfinite(errors).all() and int((errors == 0).sum()) == 1


@pytest.mark.parametrize("through_plan", [False, True])
def test_plan_gradient(make_network: MakeNetwork, through_plan: bool) -> None:
    """Without it the gradient of the basis loss is that of a constant plan."""
    network, x = make_network(plan_gradient=through_plan, entropy_weight=1.0), draw()
    loss_parts(network, network(x), x)[2].backward()
    grad = network.projection.basis_vectors.grad
    constant = make_network(entropy_weight=1.0)
    output = constant(x)
    cost = output.basis_squared.sqrt()
    plan = scaled_plan(
        cost.detach(), sinkhorn_potentials(cost.detach(), 1.0, network.settings.sinkhorn_iterations), 1.0
    )
    chosen = cost.argmin(-1, keepdim=True)
    (plan * cost).gather(-1, chosen).mean().backward()
    assert grad is not None and constant.projection.basis_vectors.grad is not None
    assert torch.allclose(grad, constant.projection.basis_vectors.grad, atol=1e-10) is not through_plan
