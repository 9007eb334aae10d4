"""Base of the terms for missing values and unseen categories: the surprise at events in columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ptad.arrays import Array, Matrix, namespace, on_device
from ptad.reference import Batch, Reference
from ptad.terms.base import Reason, State, Term, TermValues, normalised


class Surprise(Term):
    """Sum of minus the logarithm of the probability of the event, over the columns in which it occurred."""

    reason: ClassVar[Reason]

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        super().__init__(state, reference, settings)
        self._surprise = on_device(-np.log(self.probability()), reference.device)  # (n_columns,)

    def probability(self) -> Matrix:
        """Return (n_columns,): the probability of the event in each column."""
        raise NotImplementedError

    def occurred(self, rows: Array) -> Array:
        """Return (n, n_columns): whether the event occurred."""
        raise NotImplementedError

    def value(self, batch: Batch) -> Array:
        """Return (n,): the surprise added up over the columns in which the event occurred."""
        return (self.occurred(batch.rows) * self._surprise).sum(axis=1)

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns in which the event occurred."""
        xp: Any = namespace(batch.rows)
        cells = self.occurred(batch.rows) * self._surprise
        zeros = xp.zeros_like(cells, dtype=xp.int64)
        return TermValues(cells.sum(axis=1), normalised(cells), reason=zeros + int(self.reason), partner=zeros - 1)


def smoothed(share: Any, n_rows: int) -> Any:
    """Return a share of n rows as a probability; half a row is added, so that it is never 0."""
    return (share + 0.5 / n_rows) / (1.0 + 0.5 / n_rows)
