"""Local reconstruction: how well a row is rebuilt from the reference rows nearest to it.

For the k nearest reference rows with differences D to the row, the weights w with sum 1 that minimise
|w D|^2 + lambda |w|^2 give the point of their affine space nearest to the row, held back by the ridge lambda. The
minimum is 1 / (1' (D D' + lambda I)^-1 1) = 1 / |y|^2 with L y = 1, L the Cholesky factor. A second look at the same
neighbours takes the nearest of them by values alone, without ranks. The value of the term is the logarithm of the
first plus ``nearest_weight`` times that of the second.

Shape
-----
points       (n, c), see ``coordinates``
differences  (n, k, c), neighbour minus row
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import (
    Array,
    cholesky,
    columns,
    floats,
    inverse,
    is_tensor,
    largest,
    like,
    namespace,
    on_device,
    pick,
)
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import FitContext, History, Reason, State, TermSettings, TermValues, cell_states
from ptad.terms.coordinates import Coordinates
from ptad.terms.neighbours import Neighbours

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class LocalReconstructionSettings(TermSettings):
    """Settings of :class:`LocalReconstruction`."""

    name: ClassVar[str] = "local_reconstruction"

    neighbours: int = setting(32, low=1, high=1024)
    ridge: float = setting(0.3, low=0.0, high=1e3)  # in units of the mean squared distance to the neighbours
    nearest_weight: float = setting(0.8, low=0.0, high=1e3)
    floor: float = setting(1e-4, low=0.0, high=1.0, open_low=True)  # squared distance that counts as none
    rank_weight: float = setting(0.5, low=0.0, high=10.0)
    category_weight: float = setting(0.5, low=0.0, high=10.0)

    @classmethod
    def term(cls) -> type[LocalReconstruction]:
        return LocalReconstruction


class LocalReconstruction:
    """Logarithm of the penalised squared residual, and of the squared distance to the nearest row."""

    standardised: ClassVar[bool] = True
    chunked: ClassVar[bool] = True
    batch_size: int | None = None

    def __init__(
        self, reference: Matrix, features: Features, settings: LocalReconstructionSettings, device: str
    ) -> None:
        self.settings = settings
        self.features = features
        self.history: History = []
        coordinates = Coordinates.fit(reference, features, settings.rank_weight, settings.category_weight)
        self._neighbours = Neighbours(coordinates(reference), settings.neighbours, device)
        self._coordinates = coordinates.to(device)
        self._reference = on_device(reference, device)
        member = coordinates.column[:, None] == np.arange(features.n_columns)
        self._member = on_device(member.astype(np.float64), device)  # sums coordinates by column
        self._by_value = on_device((~coordinates.is_rank).astype(np.float64), device)

    @classmethod
    def fit(
        cls,
        rows: Matrix,
        reference: Matrix,
        features: Features,
        settings: LocalReconstructionSettings,
        context: FitContext,
    ) -> Self:
        """Keep the reference rows; there is nothing to train."""
        return cls(reference, features, settings, context.device)

    def value(self, rows: Array) -> Array:
        """Return (n,): the logarithms of the two squared distances."""
        _, differences = self._neighbours(self._coordinates(rows))
        y = self._factor(differences)[:, -1, :-1]
        return self._logarithm(y, self._squared_by_value(differences))

    def _logarithm(self, y: Array, squared: Array) -> Array:
        xp: Any = namespace(y)
        nearest = -largest(-squared)
        return self.settings.nearest_weight * xp.log(nearest + self.settings.floor) - xp.log((y * y).sum(axis=1))

    def _squared_by_value(self, differences: Array) -> Array:
        """Return (n, k): squared distances without ranks."""
        return namespace(differences).einsum("nkc,nkc,c->nk", differences, differences, self._by_value)

    def _factor(self, differences: Array) -> Array:
        """Return the Cholesky factor of D D' + lambda I bordered by a row of ones: its last row holds y."""
        xp: Any = namespace(differences)
        n, k, _ = differences.shape
        gram = differences @ (differences.mT if is_tensor(differences) else differences.swapaxes(1, 2))
        identity = like(np.eye(k), differences)
        ridge = self.settings.ridge * (gram * identity).sum(axis=(1, 2)) / k + self.settings.floor
        ones = like(np.ones((1, k, 1)), differences) + 0.0 * ridge[:, None, None]
        # Any corner above 1' (D D' + lambda I)^-1 1, which is at most k / lambda, keeps the whole positive definite.
        corner = (2.0 * k / ridge)[:, None, None]
        upper = xp.concatenate([gram + ridge[:, None, None] * identity, ones], axis=2)
        lower = xp.concatenate([ones.reshape(n, 1, k), corner], axis=2)
        return cholesky(xp.concatenate([upper, lower], axis=1))

    def _weights(self, factor: Array) -> Array:
        """Return (n, k): the weights of the reconstruction."""
        weights = (factor[:, -1:, :-1] @ inverse(factor[:, :-1, :-1]))[:, 0]
        return weights / weights.sum(axis=1)[:, None]

    def explain(self, rows: Array) -> TermValues:
        """Return the values, the columns they come from, and the values that the neighbours make likely."""
        xp: Any = namespace(rows)
        near, differences = self._neighbours(self._coordinates(rows))
        factor = self._factor(differences)
        weights = self._weights(factor)
        residual = (weights[:, None, :] @ differences)[:, 0]
        squared = self._squared_by_value(differences)
        nearest = pick(differences, squared.argmin(axis=1)[:, None])[:, 0] * self._by_value
        shares = _normalised(residual**2 @ self._member)
        shares = shares + self.settings.nearest_weight * _normalised(nearest**2 @ self._member)
        missing, unseen = cell_states(rows, self.features)
        reason = xp.where(missing, int(Reason.MISSING), xp.where(unseen, int(Reason.UNSEEN_CATEGORY), 0))
        return TermValues(
            value=self._logarithm(factor[:, -1, :-1], squared),
            shares=_normalised(shares),
            reason=reason,
            partner=xp.zeros_like(reason) - 1,
            expected=self._expected(weights, near),
        )

    def _expected(self, weights: Array, near: Array) -> Array:
        """Return the neighbours' weighted mean within their range; for categories the heaviest one."""
        xp: Any = namespace(weights)
        values = self._reference[near]  # (n, k, n_features)
        gone = xp.isnan(values)
        held = xp.where(gone, 0.0, weights[:, :, None])
        total = held.sum(axis=1)
        mean = (held * xp.where(gone, 0.0, values)).sum(axis=1) / xp.where(xp.abs(total) > 1e-9, total, 1.0)
        low, high = -largest(-xp.where(gone, np.inf, values)), largest(xp.where(gone, -np.inf, values))
        expected = xp.where(gone.all(axis=1), np.nan, xp.minimum(xp.maximum(mean, low), high))
        found, place = [expected], np.arange(len(self.features))
        for i, j in enumerate(self.features.categories.tolist()):
            codes = like(np.arange(int(self.features.n_categories[j])), weights)
            votes = (weights[:, :, None] * (values[:, :, j, None] == codes)).sum(axis=1)
            found.append(xp.where(gone[:, :, j].all(axis=1), np.nan, floats(votes.argmax(axis=1)))[:, None])
            place[j] = len(self.features) + i
        return columns(xp.concatenate(found, axis=1), place)

    def transform(self, rows: Array) -> Array:
        """Return (n, n_columns): how far the reconstruction misses every column, in widths of its range."""
        _, differences = self._neighbours(self._coordinates(rows))
        residual = (self._weights(self._factor(differences))[:, None, :] @ differences)[:, 0]
        return ((residual**2 * self._by_value) @ self._member) ** 0.5

    def transform_names(self) -> list[str]:
        return [f"residual_{{{i}}}" for i in range(self.features.n_columns)]

    def state(self) -> State:
        """Return nothing: all follows from the reference rows."""
        return {}

    @classmethod
    def from_state(
        cls, state: State, reference: Matrix, features: Features, settings: LocalReconstructionSettings, device: str
    ) -> Self:
        return cls(reference, features, settings, device)


def _normalised(shares: Array) -> Array:
    total = shares.sum(axis=1)[:, None]
    return shares / namespace(shares).where(total > 0.0, total, 1.0)
