"""Local tail: whether a value lies beyond those of the row's neighbours.

For every numeric feature the two-sided tail probability p of the value among the nearest reference rows is taken; the
value of the term is the logarithm of the mean of 1 / p over the features. A row in the middle of its neighbours has
none to fear, however sparse its surroundings are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ptad.arrays import Array, namespace
from ptad.reference import Batch
from ptad.settings import setting
from ptad.terms.base import Reason, TermSettings, TermValues, cell_states, log_mean_exp, softmax
from ptad.terms.neighbour_term import NeighbourTerm


@dataclass(frozen=True)
class LocalTailSettings(TermSettings):
    """Settings of :class:`LocalTail`."""

    name: ClassVar[str] = "local_tail"

    neighbours: int = setting(16, low=2, high=1024)

    @classmethod
    def term(cls) -> type[LocalTail]:
        return LocalTail


class LocalTail(NeighbourTerm):
    """Logarithm of the mean inverse tail probability among the neighbours."""

    settings: LocalTailSettings

    def _surprise(self, batch: Batch) -> Array:
        """Return (n, n_numbers): minus the logarithm of the tail probability."""
        xp: Any = namespace(batch.rows)
        numbers = len(self.features.numbers)
        differences = batch.neighbourhood.differences[:, : self.settings.neighbours, :numbers]
        fewer = xp.minimum((differences <= 0.0).sum(axis=1), (differences >= 0.0).sum(axis=1))
        return -xp.log(xp.clip((2.0 * fewer + 1.0) / (differences.shape[1] + 1.0), 0.0, 1.0))

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the mean inverse probability."""
        if not len(self.features.numbers):
            return namespace(batch.rows).zeros_like(batch.rows[:, 0])
        return log_mean_exp(self._surprise(batch))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns that dominate the mean."""
        xp: Any = namespace(batch.rows)
        missing, _ = cell_states(batch.rows, self.features)
        reason = xp.where(missing, int(Reason.MISSING), int(Reason.UNUSUAL_VALUE))
        shares, value = reason * 0.0, xp.zeros_like(batch.rows[:, 0])
        if n_numbers := len(self.features.numbers):
            surprise = self._surprise(batch)
            value, shares = log_mean_exp(surprise), softmax(surprise) @ self._member[:n_numbers]
        return TermValues(value=value, shares=shares, reason=reason, partner=xp.zeros_like(reason) - 1)
