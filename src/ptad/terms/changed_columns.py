"""Changed columns: in how few columns the row differs from a reference row.

In tables of codes and counts an anomaly may be near by distance and yet a combination that nobody has: what tells is
that no neighbour agrees with it in all but a few columns. Where every value is unique the term says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ptad.arrays import Array, largest, namespace
from ptad.reference import Batch
from ptad.terms.base import Reason, TermSettings, TermValues
from ptad.terms.neighbour_term import NeighbourTerm, normalised


@dataclass(frozen=True)
class ChangedColumnsSettings(TermSettings):
    """Settings of :class:`ChangedColumns`."""

    name: ClassVar[str] = "changed_columns"

    @classmethod
    def term(cls) -> type[ChangedColumns]:
        return ChangedColumns


class ChangedColumns(NeighbourTerm):
    """Logarithm of the smallest number of columns in which a neighbour differs."""

    settings: ChangedColumnsSettings

    def _changed(self, batch: Batch) -> Array:
        """Return (n, k, n_columns): whether the neighbour differs in the column."""
        differences = batch.neighbourhood.differences[:, :, : self._n_by_value]
        return ((differences != 0.0) * 1.0) @ self._member[: self._n_by_value] > 0.0

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the number of columns plus one half."""
        return namespace(batch.rows).log(0.5 - largest(-1.0 * self._changed(batch).sum(axis=2)))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns in which the most similar neighbour differs."""
        xp: Any = namespace(batch.rows)
        changed = self._changed(batch)
        count = changed.sum(axis=2)
        row = np.arange(len(batch))
        place = count.argmin(axis=1)
        shares = 1.0 * changed[row, place]
        reason = xp.zeros_like(shares, dtype=xp.int64) + int(Reason.UNUSUAL_COMBINATION)
        return TermValues(
            value=xp.log(count[row, place] + 0.5),
            shares=normalised(shares),
            reason=reason,
            partner=xp.zeros_like(reason) - 1,
        )
