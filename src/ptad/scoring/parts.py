"""The score of Eq. 8 and its parts, per row and per cell.

Shape
-----
all per-member tensors lead with (n_members, n_rows, ...); what leaves this module is averaged over the members.

The score is reconstruction + kappa * basis + alpha * prototype (Eq. 8) + missing, and with retrieved rows + neighbour
+ local. Each part is split over the columns so that the contributions of a row add up to its score:

- reconstruction, missing, neighbour and local belong to a cell by definition;
- basis and prototype are Euclidean norms; a column's share is its share of the squared norm.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptad.model import Network, Output
from ptad.scoring.retrieval import Retrieval, Retrieved
from ptad.scoring.space import Space
from ptad.training.loss import cell_errors
from ptad.transport import euclidean_cost, matched_cost, scaled_plan, sinkhorn_potentials

Array = NDArray[np.float64]


@dataclass
class Parts:
    """Score parts per row, weighted as they enter the score: ``score`` is their sum."""

    score: Array
    reconstruction: Array
    basis: Array
    prototype: Array
    missing: Array
    neighbour: Array
    local: Array

    @property
    def network(self) -> Array:
        """Eq. 8: what the network adds."""
        return self.reconstruction + self.basis + self.prototype

    @staticmethod
    def concatenate(items: list[Parts]) -> Parts:
        return Parts(**{f.name: np.concatenate([getattr(i, f.name) for i in items]) for f in fields(Parts)})


@dataclass
class Cells:
    """What an explanation is made of, per encoded cell."""

    contributions: Array  # (n, d), rows add up to the score
    missing: Array  # (n, d), the part of it that comes from missing-value indicators
    expected: Array  # (n, d), the reconstruction averaged over branches
    masking_rate: Array  # (n, d), share of the cell's latent that the P-space masks hide
    data_mask: Array  # (n, d), the soft mask
    nearest_basis: NDArray[np.int64]  # (n,), by the first member
    nearest_prototype: NDArray[np.int64]

    @staticmethod
    def concatenate(items: list[Cells]) -> Cells:
        return Cells(**{f.name: np.concatenate([getattr(i, f.name) for i in items]) for f in fields(Cells)})


@dataclass
class Potentials:
    """Frozen column potentials of both transport problems (PAPER-02); None for a part that is off or uses MSE."""

    basis: Tensor | None
    prototype: Tensor | None


class Columns(Protocol):
    """What the score knows besides the network: the columns, the network's units, the retrieved rows."""

    missing_rate: Tensor
    column_weight: Tensor
    network_factor: float
    space: Space
    retrieval: Retrieval | None


def solve_potentials(network: Network, output: Output) -> Potentials:
    """Solve both transport problems over the rows of this output."""
    config = network.config

    def solve(squared: Tensor | None, distance: str) -> Tensor | None:
        if squared is None or distance == "mse":
            return None
        return sinkhorn_potentials(euclidean_cost(squared), config.entropy_weight, config.sinkhorn_iterations)

    return Potentials(
        basis=solve(output.basis_squared if config.scores_basis else None, config.basis_distance),
        prototype=solve(output.prototype_squared, config.prototype_distance),
    )


@dataclass
class Assessment:
    """One chunk of rows, judged."""

    network: Network
    columns: Columns
    output: Output
    errors: Tensor  # (E, n, d)
    missing: Tensor  # (E, n, d)
    basis: Tensor  # (E, n), weighted
    basis_index: Tensor
    prototype: Tensor  # (E, n), weighted
    prototype_index: Tensor
    retrieved: Retrieved | None

    @property
    def network_score(self) -> Tensor:
        """Eq. 8, (E, n)."""
        return self.errors.sum(dim=-1) + self.basis + self.prototype

    @property
    def parts(self) -> Parts:
        return Parts(*(_rounded(part) for part in self.part_values()))

    def part_values(self) -> tuple[Tensor, ...]:
        """Return the fields of :class:`Parts` before rounding, each (n,)."""
        missing = self.missing.sum(dim=-1)
        neighbour = local = torch.zeros_like(missing)
        if (found := self.retrieved) is not None:
            neighbour, local = (e.sum(dim=-1).expand_as(missing) for e in (found.neighbour, found.local))
        score = self.network_score + missing + neighbour + local
        every = (score, self.errors.sum(dim=-1), self.basis, self.prototype, missing, neighbour, local)
        return tuple(part.mean(dim=0) for part in every)

    def contribution_values(self) -> Tensor:
        """Return what every cell adds to the score, before rounding, (n, d)."""
        contributions = self.errors + self.missing + self._basis_share() + self._prototype_share()
        if (found := self.retrieved) is not None:
            contributions = contributions + found.neighbour + found.local
        return contributions.mean(dim=0)

    def cells(self) -> Cells:
        output = self.output
        if (retrieval := self.columns.retrieval) is None or (found := self.retrieved) is None:
            expected = self.columns.space.back(output.reconstructions.mean(dim=(0, 1)))
        else:
            expected = retrieval.expected(found)
        nothing = torch.zeros_like(self.errors)
        return Cells(
            contributions=_rounded(self.contribution_values()),
            missing=_rounded(self.missing.mean(dim=0)),
            expected=_rounded(expected),
            masking_rate=_rounded(self._masking_rate().mean(dim=0)),
            data_mask=_rounded((nothing + 1.0 if output.data_mask is None else output.data_mask).mean(dim=0)),
            nearest_basis=self.basis_index[0].cpu().numpy(),
            nearest_prototype=self.prototype_index[0].cpu().numpy(),
        )

    def _per_column(self, latent_like: Tensor) -> Tensor | None:
        """Return (..., d, e) from (..., H) where the P-space is made of cells, None for whole rows."""
        n_features = self.errors.shape[-1]
        if self.network.config.backbone in ("mlp", "dense"):
            return None
        return latent_like.unflatten(-1, (n_features, -1))

    def _basis_share(self) -> Tensor:
        basis_vectors = self.network.projection.basis_vectors
        index = self.basis_index.unsqueeze(-1).expand(-1, -1, basis_vectors.shape[-1])
        deviation = (self.output.latent - basis_vectors.gather(1, index)).square()
        cells = self._per_column(deviation)
        return self.basis.unsqueeze(-1) * _share(self.errors if cells is None else cells.sum(dim=-1))

    def _prototype_share(self) -> Tensor:
        if self.network.prototypes is None or self.output.association is None:
            return torch.zeros_like(self.errors)
        prototypes = self.network.prototypes.prototypes
        index = self.prototype_index.unsqueeze(-1).expand(-1, -1, prototypes.shape[-1])
        deviation = (self.output.association - prototypes.gather(1, index)).square()
        return self.prototype.unsqueeze(-1) * _share(deviation)

    def _masking_rate(self) -> Tensor:
        if self.output.projection_masks is None:
            return torch.zeros_like(self.errors)
        hidden = 1.0 - self.output.projection_masks.mean(dim=1)
        cells = self._per_column(hidden)
        return hidden.mean(dim=-1, keepdim=True).expand_as(self.errors) if cells is None else cells.mean(dim=-1)


def assess(
    network: Network, output: Output, x: Tensor, potentials: Potentials, columns: Columns, *, complete: bool = False
) -> Assessment:
    """Judge the encoded rows ``x`` (n_members, n, d) by the output that belongs to them."""
    config = network.config
    factor = columns.network_factor
    basis, basis_index = _part(
        output.basis_squared if config.scores_basis else None,
        potentials.basis,
        network,
        network.backbone.latent_dim,
        like=output.basis_squared,
    )
    prototype, prototype_index = _part(
        output.prototype_squared, potentials.prototype, network, network.n_features, like=output.basis_squared
    )
    return Assessment(
        network=network,
        columns=columns,
        output=output,
        errors=cell_errors(output, columns.space(x)) * factor,
        missing=missing_errors(x, columns) * (columns.retrieval.indicator_scale if columns.retrieval else 1.0),
        basis=config.basis_score_weight * factor * basis,
        basis_index=basis_index,
        prototype=config.prototype_score_weight * factor * prototype,
        prototype_index=prototype_index,
        retrieved=None if columns.retrieval is None else columns.retrieval(x[0], complete=complete),
    )


def missing_errors(x: Tensor, columns: Columns) -> Tensor:
    """Return the squared error of every missing-value indicator against its training mean.

    A missing cell has no value to be wrong about; what can be strange is that it is missing. Where that happened often
    in training it costs next to nothing; where it never happened, as much as a value at the far end of its column.
    """
    observed = columns.missing_rate.square() * columns.column_weight
    absent = (1.0 - columns.missing_rate).square() * columns.column_weight
    return torch.where(x.isnan(), absent, observed)


def _part(
    squared: Tensor | None, g: Tensor | None, network: Network, n_dimensions: int, *, like: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the transported (or mean squared) distance to the matched atom, and its index, per member and row."""
    config = network.config
    if squared is None:
        return torch.zeros_like(like[..., 0]), torch.zeros_like(like[..., 0], dtype=torch.int64)
    if g is None:
        smallest = squared.min(dim=-1)
        return smallest.values / n_dimensions, smallest.indices
    cost = euclidean_cost(squared)
    return matched_cost(cost, scaled_plan(cost, g, config.entropy_weight), config.matching)


def _share(squares: Tensor) -> Tensor:
    total = squares.sum(dim=-1, keepdim=True)
    # A row of missing cells only has no errors to share by; its cells then share alike, so that they still add up.
    return torch.where(total > 0.0, squares / total.clamp_min(1e-30), 1.0 / squares.shape[-1])


def _rounded(values: Tensor) -> Array:
    return values.float().cpu().numpy().astype(np.float64)
