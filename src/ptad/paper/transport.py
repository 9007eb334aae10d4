"""Entropic optimal transport between rows and a few trained atoms, in the log domain.

Shape
-----
cost    (..., n_rows, n_atoms)
g       (..., n_atoms)            column potentials, in units of ``entropy_weight``
plan    (..., n_rows, n_atoms)    ALWAYS multiplied by n_rows: every row sums to one

NOTE[PAPER-03] With row marginals 1/N, costs weighted by the plan shrink as 1/N; here the plan is N * T throughout.
NOTE[PAPER-05] exp(-C / lambda) underflows for latents of some hundred dimensions, hence logarithms; the number of
iterations is fixed, so that nothing is read back to the host and the solver fits into a CUDA graph.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def euclidean_cost(squared_distance: Tensor) -> Tensor:
    """Return the square root of the squared distances, with a finite slope at zero."""
    return squared_distance.clamp_min(1e-12).sqrt()


def sinkhorn_potentials(cost: Tensor, entropy_weight: float, n_iterations: int) -> Tensor:
    """Solve Eq. 5's transport problem with uniform marginals and return the column potentials g.

    The row potentials follow from g in closed form (see :func:`scaled_plan`) and are not stored: each iteration
    computes the plan with exact row marginals and corrects g by the logarithm of its column marginals.
    """
    kernel = -cost / entropy_weight
    log_column = -math.log(cost.shape[-1])
    tiny = torch.finfo(cost.dtype).tiny  # keeps the logarithm finite for an atom far from all rows
    g = torch.zeros_like(kernel[..., 0, :])
    for _ in range(n_iterations):
        marginal = torch.softmax(kernel + g.unsqueeze(-2), dim=-1).mean(dim=-2)
        g = g + (log_column - marginal.clamp_min(tiny).log())
    return g


def scaled_plan(cost: Tensor, g: Tensor, entropy_weight: float) -> Tensor:
    """Return N * T from frozen column potentials: softmax over the atoms of g - C / lambda.

    NOTE[PAPER-02] On the rows that g was solved for, this is the plan with exact row marginals; for any other row
    it is the plan that the row would have without disturbing the others, hence independent of the batch.
    """
    return torch.softmax(g.unsqueeze(-2) - cost / entropy_weight, dim=-1)


def matched_cost(cost: Tensor, plan: Tensor, matching: str) -> tuple[Tensor, Tensor]:
    """Return each row's transported cost at its matched atom, and that atom's index.

    NOTE[PAPER-04] The text's min_k T_nk C_nk is smallest where T vanishes, at the farthest atom
    (``product_min``); its prose means the nearest atom (``nearest``).
    """
    product = plan * cost
    index = (product if matching == "product_min" else cost).argmin(dim=-1, keepdim=True)
    return product.gather(-1, index).squeeze(-1), index.squeeze(-1)
