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

from ptad.arrays import Array, cholesky, floats, inverse, is_tensor, largest, like, namespace, take_columns
from ptad.reference import Batch, Neighbourhood
from ptad.settings import setting
from ptad.terms.base import TermSettings, TermValues
from ptad.terms.neighbour_term import NeighbourTerm

# With a small ridge many neighbours together fit even an anomaly. With this larger one the residual shows in which
# columns a row differs from its neighbours: for explanations, and as an input of the pretrained network.
RESIDUAL_RIDGE = 0.3


@dataclass(frozen=True)
class LocalReconstructionSettings(TermSettings):
    """Settings of :class:`LocalReconstruction`."""

    name: ClassVar[str] = "local_reconstruction"

    ridge: float = setting(0.001, low=0.0, high=1e3)  # in units of the mean squared distance to the neighbours
    floor: float = setting(1e-6, low=1e-12, high=1.0)  # smallest ridge

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

    def factor(self, neighbourhood: Neighbourhood, ridge: float) -> Array:
        """Return :func:`bordered_factor`, cached for the other terms."""
        key = ridge, self.settings.floor
        if key not in neighbourhood.factors:
            neighbourhood.factors[key] = bordered_factor(neighbourhood.gram, *key)
        return neighbourhood.factors[key]

    def reconstruct(self, neighbourhood: Neighbourhood, ridge: float) -> tuple[Array, Array]:
        """Return the weights of the neighbours, (n, k), and the residual of the reconstruction, (n, c)."""
        factor, differences = self.factor(neighbourhood, ridge), neighbourhood.differences
        lower, y = factor[:, :-1, :-1], factor[:, -1:, :-1]
        if is_tensor(lower):
            weights = (y @ inverse(lower))[:, 0]
        else:
            weights = np.linalg.solve(lower.swapaxes(1, 2), y.swapaxes(1, 2))[:, :, 0]
        weights = weights / weights.sum(axis=1)[:, None]
        return weights, (weights[:, None, :] @ differences)[:, 0]

    def explain(self, batch: Batch) -> TermValues:
        """Return the values, shares by the squared residual, and expected values from the weights of the neighbours."""
        weights, residual = self.reconstruct(batch.neighbourhood, RESIDUAL_RIDGE)
        expected = self._expected(weights, self.reference.values[batch.neighbourhood.near])
        shares = self._shares(self._by_column(residual**2))
        return TermValues(self.value(batch), shares, *self._reasons(batch), expected)

    def _cells(self, neighbourhood: Neighbourhood) -> Array:
        return self._by_column(self.reconstruct(neighbourhood, RESIDUAL_RIDGE)[1] ** 2)

    def _expected(self, weights: Array, values: Array) -> Array:
        """Return the neighbours' weighted mean within their range; for categories the heaviest one.

        Shape
        -----
        weights (n, k), values (n, k, n_features) -> (n, n_features)
        """
        xp: Any = namespace(weights)
        missing = xp.isnan(values)
        present_weights = xp.where(missing, 0.0, weights[:, :, None])
        total = present_weights.sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is moved into the range below
            mean = (present_weights * xp.where(missing, 0.0, values)).sum(axis=1)
            mean = mean / xp.where(xp.abs(total) > 1e-9, total, 1.0)
        low, high = -largest(-xp.where(missing, np.inf, values)), largest(xp.where(missing, -np.inf, values))
        number = xp.minimum(xp.maximum(xp.where(xp.isnan(mean), low, mean), low), high)
        parts, place = [xp.where(missing.all(axis=1), np.nan, number)], np.arange(len(self.features))
        for i, j in enumerate(self.features.categories.tolist()):
            codes = like(np.arange(int(self.features.n_categories[j])), weights)
            votes = (weights[:, :, None] * (values[:, :, j, None] == codes)).sum(axis=1)
            code = xp.where(missing[:, :, j].all(axis=1), np.nan, floats(votes.argmax(axis=1)))
            parts.append(code[:, None])
            place[j] = len(self.features) + i
        return take_columns(xp.concatenate(parts, axis=1), place)

    def transform(self, batch: Batch) -> Array:
        """Return (n, n_columns): the residual of every column, in widths of its range."""
        residual = self.reconstruct(batch.neighbourhood, self.settings.ridge)[1][:, : self._n_by_value]
        return self._by_column(residual**2) ** 0.5

    def transform_names(self) -> list[str]:
        return [f"residual_{{{i}}}" for i in range(self.features.n_columns)]


def bordered_factor(gram: Array, ridge: float, floor: float) -> Array:
    """Return the Cholesky factor of D D' + lambda I bordered by a row of ones: its last row holds y.

    Shape
    -----
    gram (n, k, k), D D' -> (n, k + 1, k + 1)
    """
    xp: Any = namespace(gram)
    n, k, _ = gram.shape
    identity = like(np.eye(k), gram)
    penalty = ridge * (gram * identity).sum(axis=(1, 2)) / k + floor
    ones = like(np.ones((1, k, 1)), gram) + 0.0 * penalty[:, None, None]
    # Any corner above 1' (D D' + lambda I)^-1 1, which is at most k / lambda, keeps the whole positive definite.
    corner = (2.0 * k / penalty)[:, None, None]
    upper = xp.concatenate([gram + penalty[:, None, None] * identity, ones], axis=2)
    lower = xp.concatenate([ones.reshape(n, 1, k), corner], axis=2)
    return cholesky(xp.concatenate([upper, lower], axis=1))
