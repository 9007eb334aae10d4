"""Nearest row: the distance to the most similar reference row, by values alone.

The neighbours are the nearest rows by values and ranks; the value of the term is the logarithm of the squared distance
to the one of them that is nearest by values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptad.arrays import Array, gather, largest, namespace, pick
from ptad.reference import Batch
from ptad.settings import setting
from ptad.terms.base import TermSettings, TermValues, normalised
from ptad.terms.neighbour_term import NeighbourTerm


@dataclass(frozen=True)
class NearestRowSettings(TermSettings):
    """Settings of :class:`NearestRow`."""

    name: ClassVar[str] = "nearest_row"

    floor: float = setting(1e-6, low=1e-12, high=1.0)  # added to the squared distance

    @classmethod
    def term(cls) -> type[NearestRow]:
        return NearestRow


class NearestRow(NeighbourTerm):
    """Logarithm of the squared distance to the nearest row."""

    settings: NearestRowSettings

    def _squared(self, batch: Batch) -> Array:
        """Return (n, k): squared distances without ranks."""
        by_value = batch.neighbourhood.differences[:, :, : self._n_by_value]
        return namespace(by_value).einsum("nkc,nkc->nk", by_value, by_value)

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the smallest squared distance."""
        return namespace(batch.rows).log(self.settings.floor - largest(-self._squared(batch)))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns in which the nearest row differs."""
        squared = self._squared(batch)
        place = squared.argmin(axis=1)[:, None]
        difference = pick(batch.neighbourhood.differences, place)[:, 0, : self._n_by_value]
        value = namespace(squared).log(gather(squared, place)[:, 0] + self.settings.floor)
        return TermValues(value, normalised(self._by_column(difference**2)), *self._reasons(batch))
