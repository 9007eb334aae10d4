"""Missing values: the value of a missing cell is high where the column is rarely missing in training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ptad.arrays import Array, Matrix
from ptad.layout import MOST_ROWS, ArrayLayout
from ptad.reference import Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, TermSettings, cell_states
from ptad.terms.surprise import Surprise, smoothed


@dataclass(frozen=True)
class MissingValuesSettings(TermSettings):
    """Settings of :class:`MissingValues`."""

    name: ClassVar[str] = "missing_values"

    @classmethod
    def term(cls) -> type[MissingValues]:
        return MissingValues


class MissingValues(Surprise):
    """Surprise at missing cells, by the share of training rows in which the column is missing."""

    reason = Reason.MISSING

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Count how often each column is missing."""
        share = np.isnan(rows[:, reference.features.starts]).mean(axis=0)
        return cls({"chance": smoothed(share, context.n_rows)}, reference, settings)

    def probability(self) -> Matrix:
        return self._state["chance"]

    def occurred(self, rows: Array) -> Array:
        return cell_states(rows, self.features)[0]

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        return {"chance": ArrayLayout("float64", (features.n_columns,), low=0.1 / MOST_ROWS, high=1.0)}
