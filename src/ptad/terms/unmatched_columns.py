"""Unmatched columns: in how many columns no neighbour has the row's value.

In tables of codes and counts an anomaly may be close to its neighbours and still have values that none of them has.
If every value is unique, the term is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptad.arrays import Array, floats, namespace
from ptad.reference import Batch, Neighbourhood
from ptad.terms.base import TermSettings, TermValues
from ptad.terms.neighbour_term import NeighbourTerm


@dataclass(frozen=True)
class UnmatchedColumnsSettings(TermSettings):
    """Settings of :class:`UnmatchedColumns`."""

    name: ClassVar[str] = "unmatched_columns"

    @classmethod
    def term(cls) -> type[UnmatchedColumns]:
        return UnmatchedColumns


class UnmatchedColumns(NeighbourTerm):
    """Logarithm of the number of columns whose value no neighbour has."""

    settings: UnmatchedColumnsSettings

    def _cells(self, neighbourhood: Neighbourhood) -> Array:
        """Return (n, n_columns): 1 where every neighbour differs in the column, 0 elsewhere."""
        differs = (neighbourhood.differences[:, :, : self._n_by_value] != 0.0).all(axis=1)
        return floats(self._by_column(floats(differs)) > 0.0)

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the number of columns plus one half."""
        return namespace(batch.rows).log(self._cells(batch.neighbourhood).sum(axis=1) + 0.5)

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the unmatched columns."""
        return TermValues(self.value(batch), self._shares(self._cells(batch.neighbourhood)), *self._reasons(batch))
