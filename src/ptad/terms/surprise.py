"""What the terms for missing values and for unseen categories share: surprise at an event in a column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, namespace, on_device
from ptad.reference import Batch, Reference
from ptad.terms.base import Reason, Term, TermValues


class Surprise(Term):
    """Sum over columns of minus the logarithm of the chance that the event happens there."""

    reason: ClassVar[Reason]

    def __init__(self, chance: NDArray[np.float64], reference: Reference, settings: Any) -> None:
        super().__init__(reference, settings)
        self._surprise = on_device(-np.log(chance), reference.device)  # (n_columns,)

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
        total = cells.sum(axis=1)
        reason = xp.zeros_like(cells, dtype=xp.int64) + int(self.reason)
        shares = cells / xp.where(total > 0.0, total, 1.0)[:, None]
        return TermValues(value=total, shares=shares, reason=reason, partner=xp.zeros_like(reason) - 1)
