"""The base class of all terms: additive parts of the score.

A term is fitted on training rows and gives every row one number, higher for anomalies, which the detector standardises;
on request it also splits the number among the columns. Detector, bundle, explanation, export, report and service use
terms through this file only.

Shape
-----
rows    (n, n_features), float64, encoded by the schema: numbers as they are, categories as codes, NaN = missing
shares  (n, n_columns), over the columns of the original table
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, Matrix, like, namespace, take_columns
from ptad.errors import DataError
from ptad.layout import ArrayLayout
from ptad.reference import Batch, Reference
from ptad.settings import Settings, setting
from ptad.tables.features import Features

State = dict[str, NDArray[Any]]
Layouts = dict[str, ArrayLayout]  # type, shape and range of every array of a state
History = list[dict[str, float]]  # losses of a training loop, one entry per interval
StepProgress = Callable[[int, int, dict[str, float]], None]  # step, steps in all, entry of the history


class Reason(IntEnum):
    """The reason why a column adds to a score."""

    UNUSUAL_VALUE = 0
    UNUSUAL_COMBINATION = 1
    MISSING = 2
    UNSEEN_CATEGORY = 3


@dataclass(frozen=True)
class TermSettings(Settings):
    """Settings that all terms have; the settings of a term are a subclass."""

    name: ClassVar[str]

    weight: float = setting(1.0, low=0.0, high=1e6)

    @classmethod
    def term(cls) -> type[Term]:
        """Return the class of the term, which may be imported lazily here."""
        raise NotImplementedError


@dataclass(frozen=True)
class FitContext:
    """The inputs of a fit besides the rows.

    Quantities that depend on the number of rows (bins, the smallest probability) use ``n_rows``, which is the same for
    all folds: otherwise values of calibration rows and of new rows could not be compared.
    """

    rng: np.random.Generator
    n_rows: int  # rows of the whole table, of which a calibration fold leaves out some
    device: str = "cpu"
    progress: StepProgress | None = None
    checkpoint: Path | None = None  # a folder that an interrupted fit resumes from


@dataclass
class TermValues:
    """The value of a term for every row, and its attribution to columns."""

    value: Array  # (n,), as :meth:`Term.value` returns it
    shares: Array  # (n, n_columns), at least 0; each row adds up to 1, or to 0 where no column contributes
    reason: Array  # (n, n_columns), a Reason
    partner: Array  # (n, n_columns), for combinations: the other column; -1 otherwise
    expected: Array | None = None  # (n, n_features), encoded like the rows; None if the term has no expected values


class Term:
    """One additive part of the score: fitted on training rows only, the same code for calibration and new rows."""

    #: Whether the detector standardises the value; the score of a preset with one term may stay as it is.
    standardised: bool = True
    #: Whether the detector cuts the rows into small chunks and evaluates them in threads; otherwise the term does.
    chunked: ClassVar[bool] = True
    #: None: every row is scored on its own. Otherwise rows are scored together in batches of this size (paper only).
    batch_size: int | None = None

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        self._state, self.settings, self.features = state, settings, reference.features
        self.history: History = []  # empty for a term that is not trained

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Fit on all training ``rows``; ``reference`` holds the sample of them that the model keeps."""
        return cls({}, reference, settings)

    def continue_fit(self, rows: Matrix, reference: Reference, context: FitContext) -> Self:
        """Return the term fitted on further rows; a network is trained on from its present weights."""
        return type(self).fit(rows, reference, self.settings, context)

    def value(self, batch: Batch) -> Array:
        """Return (n,): higher is more anomalous."""
        raise NotImplementedError

    def explain(self, batch: Batch) -> TermValues:
        """Return the same values, attributed to columns."""
        raise NotImplementedError

    def transform(self, batch: Batch) -> Array | None:
        """Return (n, m), the rows as the term represents them, or None if it has no such representation."""
        return None

    def transform_names(self) -> list[str]:
        """Return m names for the columns of ``transform``; "{i}" stands for the name of column i."""
        return []

    def state(self) -> State:
        """Return the arrays that a bundle stores besides the reference rows."""
        return self._state

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        """Declare the arrays of a state."""
        return {}

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        """Return the term with a state that has been checked against :meth:`layouts`."""
        return cls(state, reference, settings)


def refuse_empty(rows: Array) -> None:
    """Raise if there are no rows to score."""
    if rows.shape[0] == 0:
        raise DataError("There are 0 rows to score. Give at least one.")


def cell_states(rows: Array, features: Features) -> tuple[Array, Array]:
    """Return (n, n_columns) twice: whether a cell is missing, and whether it holds an unseen category."""
    first = take_columns(rows, features.starts)
    count = np.where(features.n_categories > 0, features.n_categories, np.inf)[features.starts]
    return namespace(rows).isnan(first), first >= like(count, rows)


def normalised(shares: Array) -> Array:
    """Return shares that add up to 1 in every row, or to 0 where there are none."""
    total = shares.sum(axis=1)[:, None]
    return shares / namespace(shares).where(total > 0.0, total, 1.0)


def cell_reasons(rows: Array, features: Features, otherwise: Array | int = Reason.UNUSUAL_VALUE) -> tuple[Array, Array]:
    """Return (n, n_columns) twice: the reasons missing, unseen category or ``otherwise``; and -1, no partner."""
    xp: Any = namespace(rows)
    missing, unseen = cell_states(rows, features)
    reason = xp.where(missing, int(Reason.MISSING), xp.where(unseen, int(Reason.UNSEEN_CATEGORY), otherwise))
    return reason, xp.zeros_like(reason) - 1
