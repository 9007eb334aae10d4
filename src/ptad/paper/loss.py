"""The training loss: reconstruction, basis vectors, association prototypes, orthogonality."""

from __future__ import annotations

import torch
from torch import Tensor

from ptad.paper.network import Network, Output
from ptad.paper.projection import orthogonality
from ptad.paper.settings import NetworkSettings
from ptad.paper.transport import euclidean_cost, matched_cost, scaled_plan, sinkhorn_potentials

LOSS_PARTS = ("total", "reconstruction", "basis", "prototype", "orthogonality")


def loss_parts(network: Network, output: Output, x: Tensor) -> Tensor:
    """Return the parts in the order of ``LOSS_PARTS``, (n_parts,).

    NOTE[PAPER-03] All parts are means over rows, so that they keep their meaning for any batch size.
    """
    settings = network.settings
    reconstruction = cell_errors(output, x).sum(dim=-1).mean()
    basis = prototype = orthogonal = torch.zeros_like(reconstruction)
    if settings.scores_basis:
        basis = _distance(output.basis_squared, network.backbone.latent_dim, settings.basis_distance, settings)
        if settings.orthogonality:
            orthogonal = orthogonality(network.projection.basis_vectors)
    if output.prototype_squared is not None:
        prototype = _distance(output.prototype_squared, network.n_features, settings.prototype_distance, settings)
    total = (
        reconstruction
        + settings.basis_loss_weight * basis
        + settings.prototype_loss_weight * prototype
        + settings.orthogonality_weight * orthogonal
    )
    return torch.stack([total, reconstruction, basis, prototype, orthogonal])


def cell_errors(output: Output, x: Tensor) -> Tensor:
    """Return the squared error of every cell, (n, d), averaged over the branches; missing cells have none."""
    errors = (output.reconstructions - torch.nan_to_num(x)).square().mean(dim=0)
    return errors.masked_fill(x.isnan(), 0.0)


def _distance(squared: Tensor, n_dimensions: int, distance: str, settings: NetworkSettings) -> Tensor:
    """Return the mean over rows of the distance to the matched atom."""
    if distance == "mse":
        return squared.amin(dim=-1).mean() / n_dimensions
    cost = euclidean_cost(squared)
    # NOTE[PAPER-05] The plan is a constant for the gradient by default: the gradient flows through C.
    solved_for = cost if settings.plan_gradient else cost.detach()
    g = sinkhorn_potentials(solved_for, settings.entropy_weight, settings.sinkhorn_iterations)
    plan = scaled_plan(solved_for, g, settings.entropy_weight)
    return matched_cost(cost, plan, settings.matching)[0].mean()
