"""The score of Eq. 8 and its parts, per row and per encoded cell.

Shape
-----
n rows, d encoded columns; every tensor leads with the rows.

The score is reconstruction + kappa * basis + alpha * prototype (Eq. 8) + missing. Each part is split over the columns
so that the contributions of a row add up to its score:

- reconstruction and missing belong to a cell by definition;
- basis and prototype are Euclidean norms; a column's contribution is its share of the squared norm.

Scores are computed in double precision and rounded to single by the caller. After the rounding they do not depend on
the order of additions, so a row has the same score alone, in any batch, in any chunk and with any number of threads.
(In single precision, a P-space mask at its threshold can flip, which moves the score visibly.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ptad.paper.loss import cell_errors
from ptad.paper.network import Network, Output, ReferenceKeys
from ptad.paper.settings import NetworkSettings
from ptad.paper.transport import euclidean_cost, matched_cost, scaled_plan, sinkhorn_potentials


@dataclass
class Potentials:
    """Frozen column potentials of both transport problems (PAPER-02); None for a part that is off or uses MSE."""

    basis: Tensor | None
    prototype: Tensor | None


def solve_potentials(network: Network, output: Output) -> Potentials:
    """Solve both transport problems over the rows of this output."""
    settings = network.settings

    def solve(squared: Tensor | None, distance: str) -> Tensor | None:
        if squared is None or distance == "mse":
            return None
        return sinkhorn_potentials(euclidean_cost(squared), settings.entropy_weight, settings.sinkhorn_iterations)

    return Potentials(
        basis=solve(output.basis_squared if settings.scores_basis else None, settings.basis_distance),
        prototype=solve(output.prototype_squared, settings.prototype_distance),
    )


@dataclass
class Matched:
    """The atom (basis vector or prototype) that every row is matched with."""

    value: Tensor  # (n,), what it adds to the score
    index: Tensor  # (n,), its number; -1 where there are none


@dataclass
class Scores:
    """One chunk of rows, scored."""

    network: Network
    output: Output
    errors: Tensor  # (n, d)
    missing: Tensor  # (n, d)
    basis: Matched
    prototype: Matched

    def value(self) -> Tensor:
        """Return the score, (n,)."""
        return self.errors.sum(dim=-1) + self.basis.value + self.prototype.value + self.missing.sum(dim=-1)

    def contributions(self) -> Tensor:
        """Return what every encoded cell adds to the score, (n, d)."""
        return self.errors + self.missing + self._basis_contributions() + self._prototype_contributions()

    def expected(self) -> Tensor:
        """Return the reconstruction averaged over the branches, (n, d)."""
        return self.output.reconstructions.mean(dim=0)

    def masking_rate(self) -> Tensor:
        """Return the share of each cell's latent that the P-space masks hide, averaged over the branches, (n, d)."""
        masks = self.output.projection_masks
        if masks is None:
            return torch.zeros_like(self.errors)
        cells = self._per_column(1.0 - masks)
        if cells is None:
            cells = (1.0 - masks).mean(dim=-1, keepdim=True).expand(-1, *self.errors.shape)
        return cells.mean(dim=0)

    def data_mask(self) -> Tensor:
        """Return the soft mask, (n, d); 1 without one."""
        return torch.ones_like(self.errors) if self.output.data_mask is None else self.output.data_mask

    def _per_column(self, latent_like: Tensor) -> Tensor | None:
        """Return (..., d) means of (..., H) where the P-space is made of cells, None where it is one of rows."""
        if self.network.settings.backbone == "mlp":
            return None
        return latent_like.unflatten(-1, (self.errors.shape[-1], -1)).mean(dim=-1)

    def _basis_contributions(self) -> Tensor:
        if not self.network.settings.scores_basis:
            return torch.zeros_like(self.errors)
        basis_vectors = self.network.projection.basis_vectors
        cells = self._per_column((self.output.latent - basis_vectors[self.basis.index]).square())
        return self.basis.value.unsqueeze(-1) * _share(self.errors if cells is None else cells)

    def _prototype_contributions(self) -> Tensor:
        if self.network.prototypes is None or self.output.association is None:
            return torch.zeros_like(self.errors)
        prototypes = self.network.prototypes.prototypes
        deviation = (self.output.association - prototypes[self.prototype.index]).square()
        return self.prototype.value.unsqueeze(-1) * _share(deviation)


class Scorer:
    """The frozen network with its reference rows and transport potentials: it scores any encoded row on its own.

    NOTE[PAPER-01] Context ``reference``: every row attends to fixed training rows and to itself. Context ``batch``:
    rows attend to the rows scored beside them, as in the text.

    ``reference`` (n_reference, n_encoded) are the training rows to attend to, ``indicator_errors`` (n_encoded,) each
    what an observed and what a missing cell adds to the score.
    """

    def __init__(self, network: Network, reference: Tensor, indicator_errors: tuple[Tensor, Tensor]) -> None:
        self.network = network.double().eval().requires_grad_(False)
        self.indicator_errors = indicator_errors
        self.reference: ReferenceKeys | None = None
        self.potentials: Potentials | None = None
        if network.settings.context == "reference":
            with torch.no_grad():
                output = self.network(reference.double())
                self.reference = output.reference
                self.potentials = solve_potentials(self.network, output)

    @property
    def device(self) -> torch.device:
        return self.indicator_errors[0].device

    @property
    def chunk_rows(self) -> int:
        """Rows scored at once: those of a batch, or as many as keep the largest intermediate small."""
        settings, n_features = self.network.settings, self.network.n_features
        if settings.context == "batch":
            return settings.batch_size
        width = self.network.backbone.latent_dim * settings.feedforward_factor
        if settings.backbone != "mlp":
            width = max(width, settings.n_heads * n_features**2)  # the logits between attributes
        n_cells = 2**20 if self.device.type == "cpu" else 2**25
        return max(1, min(65536, n_cells // (settings.n_branches * width) + 1))

    def __call__(self, x: Tensor) -> Scores:
        """Score encoded rows (n, d), a whole chunk or batch; no operation waits for a result."""
        x = x.double()
        output = self.network(x, self.reference)
        # NOTE[PAPER-02] In the batch context the plan is solved over the batch, as in the text.
        potentials = solve_potentials(self.network, output) if self.potentials is None else self.potentials
        return score_output(self.network, output, x, potentials, self.indicator_errors)


def score_output(
    network: Network, output: Output, x: Tensor, potentials: Potentials, indicator_errors: tuple[Tensor, Tensor]
) -> Scores:
    """Score the encoded rows ``x`` (n, d) from their output of the network."""
    settings = network.settings
    observed, absent = indicator_errors
    basis = prototype = Matched(torch.zeros_like(x[:, 0]), torch.full_like(x[:, 0], -1, dtype=torch.int64))
    if settings.scores_basis:
        latent_dim = network.backbone.latent_dim
        basis = _matched(output.basis_squared, potentials.basis, latent_dim, settings.basis_score_weight, settings)
    if output.prototype_squared is not None:
        weight = settings.prototype_score_weight
        prototype = _matched(output.prototype_squared, potentials.prototype, network.n_features, weight, settings)
    return Scores(
        network=network,
        output=output,
        errors=cell_errors(output, x),
        missing=torch.where(x.isnan(), absent, observed),
        basis=basis,
        prototype=prototype,
    )


def _matched(squared: Tensor, g: Tensor | None, n_dimensions: int, weight: float, settings: NetworkSettings) -> Matched:
    """Return the transported (or mean squared) distance to the matched atom, times its weight."""
    if g is None:
        smallest = squared.min(dim=-1)
        return Matched(weight * smallest.values / n_dimensions, smallest.indices)
    cost = euclidean_cost(squared)
    value, index = matched_cost(cost, scaled_plan(cost, g, settings.entropy_weight), settings.matching)
    return Matched(weight * value, index)


def _share(squares: Tensor) -> Tensor:
    total = squares.sum(dim=-1, keepdim=True)
    # A row of missing cells has no errors: its cells have equal shares, so that contributions still add up.
    return torch.where(total > 0.0, squares / total.clamp_min(1e-30), 1.0 / squares.shape[-1])
