"""Reconstruction from retrieved rows: what the training rows nearest to a row make of it.

The reference context with a reference chosen per row. Two reconstructions come out of the k nearest training rows: the
nearest row itself, and the point of the affine space through all k that lies nearest to the row (attention weights that
sum to one, found by a small ridge regression instead of a softmax). Their squared errors per cell are parts of the
score like the network's.

Shape
-----
bank     (n_bank, n_features), training rows
x        (n_rows, n_features), NaN = missing: such a cell takes no part in any distance
errors   (n_rows, n_features)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

N_PROBES = 1000


class Retrieved(NamedTuple):
    """Squared errors per cell, each in units of a normal row's mean error, and the expected values."""

    neighbour: Tensor
    local: Tensor
    expected: Tensor


class Retrieval:
    """A bank of training rows that reconstructs others."""

    def __init__(self, bank: Tensor, n_neighbours: int, ridge: float, units: tuple[float, float] | None = None) -> None:
        self.rows = bank
        mean = bank.nanmean(dim=0).nan_to_num()
        self.bank = torch.where(bank.isnan(), mean, bank).double()
        self.ridge = ridge
        self.n_neighbours = max(1, min(n_neighbours, len(bank) // 4))
        self.weight, self.two_valued_weight = column_weights(self.bank)
        self._weighted = self.bank * self.weight
        self._squares = self._weighted.square()
        # Ties are common in tables of whole numbers; the row number decides, never the rounding of a sum.
        self._order = torch.arange(len(bank), device=bank.device) / (2.0 * len(bank))
        self.neighbour_unit, self.local_unit = units or (1.0, 1.0)
        if units is None and len(bank) > 1:
            found = self(self.bank[:N_PROBES])
            # In tables of copies nearly every left-out row finds a twin; the spread of the rows keeps the unit from 0.
            least = max(1e-3 * float(self._weighted.var(dim=0, correction=0).sum()), 1e-12)
            self.neighbour_unit = max(float(found.neighbour.sum(dim=1).mean()), least)
            self.local_unit = max(float(found.local.sum(dim=1).mean()), least)

    @property
    def units(self) -> tuple[float, float]:
        """A normal row's mean errors, by which both parts are divided."""
        return self.neighbour_unit, self.local_unit

    @property
    def indicator_scale(self) -> float:
        """What a wrong two-valued column, such as a missing-value indicator, adds to both parts."""
        return self.two_valued_weight**2 * (1.0 / self.neighbour_unit + 1.0 / self.local_unit)

    def __call__(self, x: Tensor) -> Retrieved:
        """Reconstruct rows."""
        seen = (~x.isnan()).double()
        x = x.nan_to_num()
        near = self._nearest(x * self.weight, seen)
        neighbours = self.bank[near]
        difference = (neighbours - x.unsqueeze(1)) * (self.weight * seen).unsqueeze(1)
        gram = difference @ difference.transpose(1, 2)
        k = gram.shape[-1]
        level = gram.diagonal(dim1=1, dim2=2).mean(dim=1) * self.ridge + 1e-12
        gram = gram + level[:, None, None] * torch.eye(k, dtype=gram.dtype, device=gram.device)
        solved: Tensor = torch.linalg.solve(gram, torch.ones_like(gram[..., :1])).squeeze(-1)
        weights = solved / solved.sum(dim=1, keepdim=True)
        local = (weights.unsqueeze(1) @ difference).squeeze(1)
        return Retrieved(
            neighbour=difference[:, 0].square() / self.neighbour_unit,
            local=local.square() / self.local_unit,
            expected=(weights.unsqueeze(1) @ neighbours).squeeze(1),
        )

    def _nearest(self, weighted: Tensor, seen: Tensor) -> Tensor:
        """Return the numbers of the nearest rows; of exact copies, the first is passed over.

        So a training row is judged as if it were new, instead of vouching for itself, and real twins still find
        each other.
        """
        squared = seen @ self._squares.T - 2.0 * (weighted @ self._weighted.T) + weighted.square().sum(1, keepdim=True)
        key = (squared * 2.0**30).round() + self._order
        near = key.topk(min(self.n_neighbours + 1, len(self.bank)), dim=1, largest=False)
        if near.indices.shape[1] == 1:
            return near.indices
        copy = near.values[:, :1] < 0.5
        return torch.where(copy, near.indices[:, 1:], near.indices[:, :-1])


def column_weights(bank: Tensor) -> tuple[Tensor, float]:
    """Return the weight of each column in distances, and that of two-valued columns.

    A flip of a two-valued column spans its whole range, where a number moves by a fraction of it: unweighted, one-hot
    columns drown the numbers. They are given the typical deviation of the other columns instead of their range.
    """
    low, high = bank.amin(dim=0), bank.amax(dim=0)
    two_valued = ((bank == low) | (bank == high)).all(dim=0)
    if two_valued.all():
        return torch.ones_like(low), 1.0
    deviation = float(bank[:, ~two_valued].std(dim=0, correction=0).mean().clamp(0.05, 0.5))
    weight = torch.ones_like(low)
    weight[two_valued] = deviation
    return weight, deviation
