"""The training loss: reconstruction, basis vectors, association prototypes, orthogonality.

Every part is returned per member, (n_members,); members do not influence each other's gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ptad.config import Config
from ptad.model import Network, Output
from ptad.model.projection import orthogonality
from ptad.transport import euclidean_cost, matched_cost, scaled_plan, sinkhorn_potentials

PARTS = ("total", "reconstruction", "basis", "prototype", "orthogonality")


def loss_parts(network: Network, output: Output, x: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Return the parts in the order of ``PARTS`` as (n_parts, n_members).

    ``hidden`` marks the cells that the network did not see; the error on the others then counts less.

    NOTE[PAPER-03] All parts are means over rows, so that they keep their meaning for any batch size.
    """
    config = network.config
    errors = cell_errors(output, x)
    if hidden is not None:
        errors = torch.where(hidden, errors, config.visible_weight * errors)
    reconstruction = errors.sum(dim=-1).mean(dim=-1)
    zero = torch.zeros_like(reconstruction)
    basis = prototype = orthogonal = zero
    if config.scores_basis:
        basis = _distance(output.basis_squared, network.backbone.latent_dim, config.basis_distance, config)
        if config.orthogonality:
            orthogonal = orthogonality(network.projection.basis_vectors)
    if output.prototype_squared is not None:
        prototype = _distance(output.prototype_squared, network.n_features, config.prototype_distance, config)
    total = (
        reconstruction
        + config.basis_loss_weight * basis
        + config.prototype_loss_weight * prototype
        + config.orthogonality_weight * orthogonal
    )
    return torch.stack([total, reconstruction, basis, prototype, orthogonal])


def cell_errors(output: Output, x: Tensor) -> Tensor:
    """Return the squared error of every cell, averaged over the branches; missing cells have none."""
    errors = (output.reconstructions - torch.nan_to_num(x).unsqueeze(1)).square().mean(dim=1)
    return errors.masked_fill(x.isnan(), 0.0)


def _distance(squared: Tensor, n_dimensions: int, distance: str, config: Config) -> Tensor:
    """Return the mean over rows of the distance to the matched atom, (n_members,)."""
    if distance == "mse":
        return squared.amin(dim=-1).mean(dim=-1) / n_dimensions
    cost = euclidean_cost(squared)
    # NOTE[PAPER-05] The plan is a constant for the gradient unless asked otherwise: the gradient flows through C.
    solved_for = cost if config.plan_gradient else cost.detach()
    g = sinkhorn_potentials(solved_for, config.entropy_weight, config.sinkhorn_iterations)
    plan = scaled_plan(solved_for, g, config.entropy_weight)
    return matched_cost(cost, plan, config.matching)[0].mean(dim=-1)
