"""Missing values: a gap in a column that is hardly ever missing is telling, one in a column that often is, is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array
from ptad.layout import MOST_ROWS, ArrayLayout
from ptad.reference import Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, State, TermSettings, cell_states
from ptad.terms.surprise import Surprise

Matrix = NDArray[np.float64]


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

    def __init__(self, chance: Matrix, reference: Reference, settings: Any) -> None:
        super().__init__(chance, reference, settings)
        self._chance = chance

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Count how often each column is missing."""
        gone = np.isnan(rows[:, reference.features.starts]).mean(axis=0)
        return cls((gone + 0.5 / context.n_rows) / (1.0 + 0.5 / context.n_rows), reference, settings)

    def happened(self, rows: Array) -> Array:
        return cell_states(rows, self.features)[0]

    def state(self) -> State:
        return {"chance": self._chance}

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        return {"chance": ArrayLayout("float64", (features.n_columns,), low=0.1 / MOST_ROWS, high=1.0)}

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        return cls(state["chance"], reference, settings)
