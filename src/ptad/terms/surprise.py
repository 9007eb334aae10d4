"""What the terms for missing values and for unseen categories share: surprise at an event in a column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ptad.arrays import Array, Matrix, namespace, on_device
from ptad.reference import Batch, Reference
from ptad.terms.base import Reason, State, Term, TermValues, normalised


class Surprise(Term):
    """Sum over columns of minus the logarithm of the chance that the event happens there."""

    reason: ClassVar[Reason]

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        super().__init__(state, reference, settings)
        self._surprise = on_device(-np.log(self.chance()), reference.device)  # (n_columns,)

    def chance(self) -> Matrix:
        """Return (n_columns,): how likely the event is in each column."""
        raise NotImplementedError

    def happened(self, rows: Array) -> Array:
        """Return (n, n_columns): whether the event happened."""
        raise NotImplementedError

    def value(self, batch: Batch) -> Array:
        """Return (n,): the surprise added up over the columns in which the event happened."""
        return (self.happened(batch.rows) * self._surprise).sum(axis=1)

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns in which the event happened."""
        xp: Any = namespace(batch.rows)
        cells = self.happened(batch.rows) * self._surprise
        none = xp.zeros_like(cells, dtype=xp.int64)
        return TermValues(cells.sum(axis=1), normalised(cells), reason=none + int(self.reason), partner=none - 1)


def smoothed(share: Any, n_rows: int) -> Any:
    """Return a share of n rows as a chance, with half a row added: what never happened may happen yet."""
    return (share + 0.5 / n_rows) / (1.0 + 0.5 / n_rows)
