"""Base of the terms that compare a row with its nearest reference rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ptad.arrays import Array, namespace
from ptad.reference import Batch, Neighbourhood, Reference
from ptad.terms.base import Reason, State, Term, cell_reasons, normalised

MIN_BASELINE = 0.05  # of the average column, added to every column


class NeighbourTerm(Term):
    """A term that is a function of the reference rows, without training."""

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        super().__init__(state, reference, settings)
        self.reference = reference
        self._n_by_value = reference.coordinates.n_by_value
        self._by_column = reference.coordinates.by_column
        reference.search  # noqa: B018  computed here once, and not by several threads at the same time

    def _cells(self, neighbourhood: Neighbourhood) -> Array:
        """Return (n, n_columns), at least 0: how much each column differs from the neighbours."""
        raise NotImplementedError

    @cached_property
    def _baseline(self) -> Array:
        """The mean of :meth:`_cells` over reference rows, (n_columns,), plus a fraction of the average column."""
        baseline = self._cells(self.reference.baseline_neighbourhood).mean(axis=0)
        return baseline + MIN_BASELINE * baseline.mean() + 1e-12

    def _shares(self, cells: Array) -> Array:
        """Return (n, n_columns): shares of the columns, relative to how much normal rows differ there.

        Normal rows differ from their neighbours, too: a difference indicates an anomaly in those columns in which
        neighbours usually agree.
        """
        return normalised(cells / self._baseline)

    def _reasons(self, batch: Batch) -> tuple[Array, Array]:
        """Return the reasons and partners of the cells, (n, n_columns) each; every partner is -1, unknown.

        A common value that differs from those of the neighbours is unusual in combination, not by itself.
        """
        common = self.reference.coordinates.is_common(batch.points)
        reason = namespace(batch.rows).where(common, int(Reason.UNUSUAL_COMBINATION), int(Reason.UNUSUAL_VALUE))
        return cell_reasons(batch.rows, self.features, reason)
