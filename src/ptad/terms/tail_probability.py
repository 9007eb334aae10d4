"""Tail probability: how far out, or how rare, every single value is among the training rows.

For a number, p is its two-sided tail probability among the reference rows; for a category, and for a number that takes
few values, the share of rows whose value is at most as frequent; for a gap, the share of rows with a gap there. Beyond
all reference rows there is nothing to count: p falls as one over the distance to them, in units of their range, so that
an absurd number stands out among any number of columns. The value of the term is the logarithm of the mean of 1 / p
over the features: a few rare values dominate it, without one of them being needed.

Shape
-----
rows  (n, n_features) -> surprise (n, n_features), minus the logarithm of p
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, GroupSum, count_below, floats, like, namespace, on_device
from ptad.reference import Batch, Reference
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import (
    FitContext,
    History,
    Reason,
    State,
    TermSettings,
    TermValues,
    cell_states,
    log_mean_exp,
    softmax,
)

Matrix = NDArray[np.float64]
EIGHTH = 0.125  # of numbers, so that differences of the largest ones stay finite
NO_VALUE = np.finfo(np.float64).max  # fills the list of a feature that has fewer values than others


@dataclass(frozen=True)
class TailProbabilitySettings(TermSettings):
    """Settings of :class:`TailProbability`."""

    name: ClassVar[str] = "tail_probability"

    few: int = setting(24, low=2, high=1000)  # values a number may take at most to be treated as a category

    @classmethod
    def term(cls) -> type[TailProbability]:
        return TailProbability


class TailProbability:
    """Logarithm of the mean inverse probability of the single values."""

    standardised: ClassVar[bool] = True
    chunked: ClassVar[bool] = True
    batch_size: int | None = None

    def __init__(
        self, reference: Reference, n_rows: int, features: Features, settings: TailProbabilitySettings, device: str
    ) -> None:
        self.settings = settings
        self.features = features
        self.history: History = []
        self._n_rows = n_rows
        few = int(np.clip(round(n_rows ** (1 / 3)), 2, settings.few))
        columns = [_known(reference.rows[:, j], features.n_categories[j] > 0, few) for j in range(len(features))]
        width = max(1, *(len(values) for values, _, _ in columns))
        knots, chance = np.full((len(columns), width), NO_VALUE), np.zeros((len(columns), width))
        for j, (values, shares, _) in enumerate(columns):
            knots[j, : len(values)] = values
            chance[j, : len(values)] = shares
        self._least = 0.5 / n_rows
        ranges = [_range(values, features.n_categories[j] > 0) for j, (values, _, _) in enumerate(columns)]
        low, high = np.array(ranges).T
        bounded = EIGHTH * high - EIGHTH * low > 0.0
        self._bounded = on_device(bounded, device)
        self._low, self._high = on_device(EIGHTH * low, device), on_device(EIGHTH * high, device)
        self._span = on_device(np.where(bounded, EIGHTH * high - EIGHTH * low, 1.0), device)
        self._knots, self._chance = on_device(knots, device), on_device(chance, device)
        self._discrete = on_device(np.array([listed for _, _, listed in columns]), device)
        self._count = on_device(np.array([max(len(values), 1.0) for values, _, _ in columns], dtype=np.float64), device)
        self._missing = on_device(np.isnan(reference.rows).mean(axis=0), device)
        self._by_column = GroupSum(features.column, features.n_columns, device)

    @classmethod
    def fit(
        cls,
        rows: Matrix,
        reference: Reference,
        features: Features,
        settings: TailProbabilitySettings,
        context: FitContext,
    ) -> Self:
        """Sort the reference rows; the least probability follows the size of the whole table."""
        n_rows = max(2, round(len(reference.rows) * context.n_rows / len(rows)))
        return cls(reference, n_rows, features, settings, context.device)

    def _surprise(self, rows: Array) -> Array:
        xp: Any = namespace(rows)
        gone = xp.isnan(rows)
        below, up_to = count_below(self._knots, xp.where(gone, 0.0, rows))
        tail = xp.minimum(floats(up_to), self._count - below) * (2.0 / self._count)
        place = xp.clip(below, 0, self._knots.shape[1] - 1)
        listed = xp.where(up_to > below, self._chance[like(np.arange(rows.shape[1]), rows), place], 0.0)
        share = xp.where(gone, self._missing, xp.where(self._discrete, listed, tail))
        # Two tails: what lies beyond all reference rows has half of 1 / n on its side.
        least = self._least * (2.0 - floats(self._discrete | gone))
        at = EIGHTH * xp.where(gone | ~self._bounded, 0.0, rows)
        outside = xp.clip(self._low - at, 0.0, None) + xp.clip(at - self._high, 0.0, None)
        beyond = xp.where(gone | ~self._bounded, 0.0, outside)
        distance = xp.log(self._span + beyond) - xp.log(self._span)
        return distance - xp.log(xp.clip(share + least, 0.0, 1.0))

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the mean inverse probability."""
        return log_mean_exp(self._surprise(batch.rows))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns that dominate the mean."""
        xp: Any = namespace(batch.rows)
        surprise = self._surprise(batch.rows)
        missing, unseen = cell_states(batch.rows, self.features)
        reason = xp.where(missing, int(Reason.MISSING), xp.where(unseen, int(Reason.UNSEEN_CATEGORY), 0))
        return TermValues(
            value=log_mean_exp(surprise),
            shares=self._by_column(softmax(surprise)),
            reason=reason,
            partner=xp.zeros_like(reason) - 1,
        )

    def transform(self, batch: Batch) -> None:
        """Return None: probabilities are no picture of a row."""

    def transform_names(self) -> list[str]:
        return []

    def state(self) -> State:
        return {"n_rows": np.array([self._n_rows])}

    @classmethod
    def from_state(
        cls, state: State, reference: Reference, features: Features, settings: TailProbabilitySettings, device: str
    ) -> Self:
        return cls(reference, int(state["n_rows"][0]), features, settings, device)


def _range(values: Matrix, category: bool) -> tuple[float, float]:
    """Return the ends of a number's values, or twice zero where nothing lies beyond."""
    return (0.0, 0.0) if category or not len(values) else (float(values[0]), float(values[-1]))


def _known(values: Matrix, category: bool, few: int) -> tuple[Matrix, Matrix, bool]:
    """Return sorted values, for discrete features with the share of rows at most as frequent, and whether it is one."""
    present = np.sort(values[~np.isnan(values)])
    different, counts = np.unique(present, return_counts=True)
    if not category and len(different) > few:
        return present, np.zeros(len(present)), False
    ordered = np.sort(counts)
    at_most = np.concatenate([[0], np.cumsum(ordered)])[np.searchsorted(ordered, counts, side="right")]
    return different, at_most / max(len(present), 1), True
