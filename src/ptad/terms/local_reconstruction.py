"""Local reconstruction: how well a row is rebuilt from the reference rows nearest to it.

For the k nearest reference rows with differences D to the row, the weights w with sum 1 that minimise
|w D|^2 + lambda |w|^2 give the point of their affine space nearest to the row, held back by the ridge lambda. The
minimum is 1 / (1' (D D' + lambda I)^-1 1) = 1 / |y|^2 with L y = 1, L the Cholesky factor; the value of the term is
its logarithm.

Shape
-----
differences  (n, k, c), neighbour minus row, see ``ptad.reference``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ptad.arrays import Array, cholesky, columns, floats, inverse, is_tensor, largest, like, namespace
from ptad.reference import Batch, Neighbourhood
from ptad.settings import setting
from ptad.terms.base import TermSettings, TermValues
from ptad.terms.neighbour_term import NeighbourTerm

# A small ridge lets many neighbours fit even an anomaly. To see where a row differs from them, they must not: this is
# the ridge of the reconstruction that explanations look at.
FIRM_RIDGE = 0.3


@dataclass(frozen=True)
class LocalReconstructionSettings(TermSettings):
    """Settings of :class:`LocalReconstruction`."""

    name: ClassVar[str] = "local_reconstruction"

    ridge: float = setting(0.001, low=0.0, high=1e3)  # in units of the mean squared distance to the neighbours
    floor: float = setting(1e-6, low=1e-12, high=1.0)  # squared distance that counts as none

    @classmethod
    def term(cls) -> type[LocalReconstruction]:
        return LocalReconstruction


class LocalReconstruction(NeighbourTerm):
    """Logarithm of the penalised squared residual."""

    settings: LocalReconstructionSettings

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the penalised squared residual."""
        y = self.factor(batch.neighbourhood, self.settings.ridge)[:, -1, :-1]
        return -namespace(y).log((y * y).sum(axis=1))

    def factor(self, found: Neighbourhood, ridge_share: float) -> Array:
        """Return the factor of :func:`bordered_factor`, which other terms may have asked for."""
        key = ridge_share, self.settings.floor
        if key not in found.factors:
            found.factors[key] = bordered_factor(found.differences, *key)
        return found.factors[key]

    def reconstructed(self, found: Neighbourhood, ridge_share: float) -> tuple[Array, Array]:
        """Return the weights of the reconstruction, (n, k), and what it misses, (n, c)."""
        factor, differences = self.factor(found, ridge_share), found.differences
        lower, y = factor[:, :-1, :-1], factor[:, -1:, :-1]
        if is_tensor(lower):
            weights = (y @ inverse(lower))[:, 0]
        else:
            weights = np.linalg.solve(lower.swapaxes(1, 2), y.swapaxes(1, 2))[:, :, 0]
        weights = weights / weights.sum(axis=1)[:, None]
        return weights, (weights[:, None, :] @ differences)[:, 0]

    def explain(self, batch: Batch) -> TermValues:
        """Return the values, the columns of the residual, and the values that the neighbours make likely."""
        found = batch.neighbourhood
        weights, residual = self.reconstructed(found, FIRM_RIDGE)
        expected = self._expected(weights, self.reference.values[found.near])
        shares = self._shares(self._by_column(residual**2))
        return TermValues(self.value(batch), shares, *self._reasons(batch), expected)

    def _cells(self, found: Neighbourhood) -> Array:
        return self._by_column(self.reconstructed(found, FIRM_RIDGE)[1] ** 2)

    def _expected(self, weights: Array, values: Array) -> Array:
        """Return the neighbours' weighted mean within their range; for categories the heaviest one.

        Shape
        -----
        weights (n, k), values (n, k, n_features) -> (n, n_features)
        """
        xp: Any = namespace(weights)
        gone = xp.isnan(values)
        held = xp.where(gone, 0.0, weights[:, :, None])
        total = held.sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # the range below takes in what overflows
            mean = (held * xp.where(gone, 0.0, values)).sum(axis=1) / xp.where(xp.abs(total) > 1e-9, total, 1.0)
        low, high = -largest(-xp.where(gone, np.inf, values)), largest(xp.where(gone, -np.inf, values))
        expected = xp.where(
            gone.all(axis=1), np.nan, xp.minimum(xp.maximum(xp.where(xp.isnan(mean), low, mean), low), high)
        )
        found, place = [expected], np.arange(len(self.features))
        for i, j in enumerate(self.features.categories.tolist()):
            codes = like(np.arange(int(self.features.n_categories[j])), weights)
            votes = (weights[:, :, None] * (values[:, :, j, None] == codes)).sum(axis=1)
            found.append(xp.where(gone[:, :, j].all(axis=1), np.nan, floats(votes.argmax(axis=1)))[:, None])
            place[j] = len(self.features) + i
        return columns(xp.concatenate(found, axis=1), place)

    def transform(self, batch: Batch) -> Array:
        """Return (n, n_columns): how far the reconstruction misses every column, in widths of its range."""
        residual = self.reconstructed(batch.neighbourhood, self.settings.ridge)[1][:, : self._n_by_value]
        return self._by_column(residual**2) ** 0.5

    def transform_names(self) -> list[str]:
        return [f"residual_{{{i}}}" for i in range(self.features.n_columns)]


def bordered_factor(differences: Array, ridge_share: float, floor: float) -> Array:
    """Return the Cholesky factor of D D' + lambda I bordered by a row of ones: its last row holds y."""
    xp: Any = namespace(differences)
    n, k, _ = differences.shape
    gram = differences @ (differences.mT if is_tensor(differences) else differences.swapaxes(1, 2))
    identity = like(np.eye(k), differences)
    ridge = ridge_share * (gram * identity).sum(axis=(1, 2)) / k + floor
    ones = like(np.ones((1, k, 1)), differences) + 0.0 * ridge[:, None, None]
    # Any corner above 1' (D D' + lambda I)^-1 1, which is at most k / lambda, keeps the whole positive definite.
    corner = (2.0 * k / ridge)[:, None, None]
    upper = xp.concatenate([gram + ridge[:, None, None] * identity, ones], axis=2)
    lower = xp.concatenate([ones.reshape(n, 1, k), corner], axis=2)
    return cholesky(xp.concatenate([upper, lower], axis=1))
