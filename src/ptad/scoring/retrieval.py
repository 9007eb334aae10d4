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

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

N_PROBES = 1000
FAR = 1e30  # squared distance of the rows that fill up the last block
BLOCK = 32  # bank rows whose smallest distance stands for all of them in the first round of the search


@dataclass
class Retrieved:
    """Squared errors per cell, each in units of a normal row's mean error, and what the expected values are made of."""

    neighbour: Tensor
    local: Tensor
    near: Tensor
    weights: Tensor


class Retrieval:
    """A bank of training rows that reconstructs others."""

    def __init__(self, bank: Tensor, n_neighbours: int, ridge: float, units: tuple[float, float] | None = None) -> None:
        self.rows = bank
        mean = bank.nanmean(dim=0).nan_to_num()
        self.bank = torch.where(bank.isnan(), mean, bank).double()
        self.ridge = ridge
        self.n_neighbours = max(1, min(n_neighbours, len(bank) // 4))
        self.weight, self.two_valued_weight = column_weights(self.bank)
        n_padding = -len(bank) % BLOCK
        self._weighted = F.pad(self.bank * self.weight, (0, 0, 0, n_padding))
        beyond = torch.zeros(len(self._weighted), dtype=torch.float64, device=bank.device)
        beyond[len(bank) :] = FAR
        # Factors of one matrix product: -2 b, |b|^2 (for complete rows), b^2 per column (for rows with gaps).
        columns = self._weighted.T
        self._complete = torch.cat([-2.0 * columns, (columns.square().sum(dim=0) + beyond).unsqueeze(0)])
        self._gappy = torch.cat([-2.0 * columns, beyond.unsqueeze(0), columns.square()])
        # Ties are common in tables of whole numbers; the row number decides, never the rounding of a sum.
        self._order = torch.arange(len(beyond), device=bank.device).view(-1, BLOCK) / (2.0 * len(beyond))
        self.neighbour_unit, self.local_unit = units or (1.0, 1.0)
        if units is None and len(bank) > 1:
            found = self(self.bank[:N_PROBES])
            # In tables of copies nearly every left-out row finds a twin; the spread of the rows keeps the unit from 0.
            least = max(1e-3 * float((self.bank * self.weight).var(dim=0, correction=0).sum()), 1e-12)
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

    def __call__(self, x: Tensor, *, complete: bool = False) -> Retrieved:
        """Reconstruct rows; ``complete`` promises that no cell is missing, which halves the work."""
        seen = None if complete else (~x.isnan()).double()
        weighted = x.nan_to_num() * self.weight
        near = self._nearest(weighted, seen)
        difference = self._weighted[near] - weighted.unsqueeze(1)
        if seen is not None:
            difference = difference * seen.unsqueeze(1)
        gram = difference @ difference.transpose(1, 2)
        level = gram.diagonal(dim1=1, dim2=2).mean(dim=1) * self.ridge + 1e-12
        gram = gram + torch.diag_embed(level.unsqueeze(1).expand(gram.shape[:2]))
        # The ridge makes the matrix positive definite, so nothing has to be checked (and no device waited for).
        ones = torch.ones_like(gram[..., :1])
        solved = torch.linalg.solve_ex(gram, ones).result.squeeze(-1)
        weights = solved / solved.sum(dim=1, keepdim=True)
        local = (weights.unsqueeze(1) @ difference).squeeze(1)
        return Retrieved(
            neighbour=difference[:, 0].square() / self.neighbour_unit,
            local=local.square() / self.local_unit,
            near=near,
            weights=weights,
        )

    def expected(self, found: Retrieved) -> Tensor:
        """Return the values that the retrieved rows make likely, (n_rows, n_features)."""
        return (found.weights.unsqueeze(1) @ self.bank[found.near]).squeeze(1)

    def _nearest(self, weighted: Tensor, seen: Tensor | None) -> Tensor:
        """Return the numbers of the nearest rows; of exact copies, the first is passed over.

        So a training row is judged as if it were new, instead of vouching for itself, and real twins still find
        each other.
        """
        one = torch.ones_like(weighted[:, :1])
        if seen is None:
            squared = torch.cat([weighted, one], dim=1) @ self._complete
        else:
            squared = torch.cat([weighted, one, seen], dim=1) @ self._gappy
        own = weighted.square().sum(dim=1, keepdim=True)
        blocks = squared.unflatten(1, (-1, BLOCK))
        wanted = min(self.n_neighbours + 1, len(self.bank))
        # The nearest rows lie in the blocks with the smallest minima: all but a few blocks are left after one look.
        smallest = _key(blocks.amin(dim=2) + own, self._order[:, 0])
        chosen = smallest.topk(min(wanted, smallest.shape[1]), dim=1, largest=False, sorted=False).indices
        candidates = blocks.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)) + own.unsqueeze(2)
        keys = _key(candidates, self._order[chosen]).flatten(1)
        nearest = keys.topk(wanted, dim=1, largest=False)
        numbers = chosen.gather(1, nearest.indices // BLOCK) * BLOCK + nearest.indices % BLOCK
        if wanted == 1:
            return numbers
        copy = nearest.values[:, :1] < 0.5
        return torch.where(copy, numbers[:, 1:], numbers[:, :-1])


def _key(squared: Tensor, order: Tensor) -> Tensor:
    """Return what rows are sorted by: the squared distance on a grid, then the row number."""
    return (squared * 2.0**30).round() + order


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
