"""What the terms that look at the nearest reference rows share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ptad.arrays import Array, namespace
from ptad.reference import Batch, Neighbourhood, Reference
from ptad.terms.base import Reason, State, Term, normalised, plain_reasons

LEAST_USUAL = 0.05  # of the average column, added to what is usual in a column


class NeighbourTerm(Term):
    """A term that follows from the reference rows: there is nothing to train."""

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        super().__init__(state, reference, settings)
        self.reference = reference
        self._n_by_value = reference.coordinates.n_by_value
        self._by_column = reference.coordinates.by_column
        reference.search  # noqa: B018  made here, once, and not by several threads of a scoring

    def _cells(self, found: Neighbourhood) -> Array:
        """Return (n, n_columns): how much each column has to do with the value, in units of its own."""
        raise NotImplementedError

    @cached_property
    def _usual(self) -> Array:
        """What a column has to do with the values of normal rows; a fraction of the average at least."""
        usual = self._cells(self.reference.usual).mean(axis=0)
        return usual + LEAST_USUAL * usual.mean() + 1e-12

    def _shares(self, cells: Array) -> Array:
        """Return (n, n_columns): the columns in proportion to how far they exceed what is usual for normal rows.

        Normal rows differ from their neighbours too, in some columns always: what speaks for an anomaly is a
        difference in a column where neighbours usually agree.
        """
        return normalised(cells / self._usual)

    def _reasons(self, batch: Batch) -> tuple[Array, Array]:
        """Return (n, n_columns) reasons, and that the term knows no partner of a column.

        A common value that differs from the neighbours' is unusual beside the row's other values, not by itself.
        """
        common = self.reference.coordinates.is_common(batch.points)
        alone = namespace(batch.rows).where(common, int(Reason.UNUSUAL_COMBINATION), int(Reason.UNUSUAL_VALUE))
        return plain_reasons(batch.rows, self.features, alone)
