"""Tail probability: how extreme or how rare every single value is among the training rows.

For a number, p is its two-sided tail probability among the reference rows; for a category, and for a number that takes
few values, the share of rows whose value is at most as frequent; for a missing cell, the share of rows in which it is
missing. The value of the term is the logarithm of the mean of 1 / p over the features: the rarest values dominate it.

Shape
-----
rows  (n, n_features) -> surprise (n, n_features), minus the logarithm of p
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ptad.arrays import Array, GroupSum, Matrix, count_below, floats, largest, like, namespace, on_device
from ptad.layout import MOST_ROWS, ArrayLayout
from ptad.reference import Batch, Reference
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, State, Term, TermSettings, TermValues, cell_reasons

PADDING = np.finfo(np.float64).max  # fills the list of a feature that has fewer values than others


@dataclass(frozen=True)
class TailProbabilitySettings(TermSettings):
    """Settings of :class:`TailProbability`."""

    name: ClassVar[str] = "tail_probability"

    few: int = setting(24, low=2, high=1000)  # values a number may take at most to be treated as a category

    @classmethod
    def term(cls) -> type[TailProbability]:
        return TailProbability


class TailProbability(Term):
    """Logarithm of the mean inverse probability of the single values."""

    def __init__(self, state: State, reference: Reference, settings: TailProbabilitySettings) -> None:
        super().__init__(state, reference, settings)
        features, device, n_rows = reference.features, reference.device, int(state["n_rows"][0])
        few = int(np.clip(round(n_rows ** (1 / 3)), 2, settings.few))
        columns = [
            _sorted_values(reference.rows[:, j], features.n_categories[j] > 0, few) for j in range(len(features))
        ]
        width = max(1, *(len(values) for values, _, _ in columns))
        knots, probability = np.full((len(columns), width), PADDING), np.zeros((len(columns), width))
        for j, (values, shares, _) in enumerate(columns):
            knots[j, : len(values)] = values
            probability[j, : len(values)] = shares
        self._min_probability = 0.5 / n_rows
        self._knots, self._probability = on_device(knots, device), on_device(probability, device)
        self._discrete = on_device(np.array([discrete for _, _, discrete in columns]), device)
        self._count = on_device(np.array([max(len(values), 1.0) for values, _, _ in columns], dtype=np.float64), device)
        self._missing = on_device(np.isnan(reference.rows).mean(axis=0), device)
        self._by_column = GroupSum(features.column, features.n_columns, device)

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Sort the reference rows; the smallest probability follows the size of the whole table."""
        n_rows = max(2, round(len(reference.rows) * context.n_rows / len(rows)))
        return cls({"n_rows": np.array([n_rows])}, reference, settings)

    def _surprise(self, rows: Array) -> Array:
        xp: Any = namespace(rows)
        missing = xp.isnan(rows)
        below, up_to = count_below(self._knots, xp.where(missing, 0.0, rows))
        tail = xp.minimum(floats(up_to), self._count - below) * (2.0 / self._count)
        place = xp.clip(below, 0, self._knots.shape[1] - 1)
        rarity = xp.where(up_to > below, self._probability[like(np.arange(rows.shape[1]), rows), place], 0.0)
        share = xp.where(missing, self._missing, xp.where(self._discrete, rarity, tail))
        # A number beyond all reference rows has half of 1 / n in its tail, and there are two tails.
        minimum = self._min_probability * (2.0 - floats(self._discrete | missing))
        return -xp.log(xp.clip(share + minimum, 0.0, 1.0))

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the mean inverse probability."""
        return log_mean_exp(self._surprise(batch.rows))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns that dominate the mean."""
        surprise = self._surprise(batch.rows)
        shares = self._by_column(softmax(surprise))
        return TermValues(log_mean_exp(surprise), shares, *cell_reasons(batch.rows, self.features))

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        return {"n_rows": ArrayLayout("int64", (1,), low=2, high=MOST_ROWS)}


def _sorted_values(values: Matrix, category: bool, few: int) -> tuple[Matrix, Matrix, bool]:
    """Return the sorted values of a feature, their probabilities if it is discrete, and whether it is."""
    present = np.sort(values[~np.isnan(values)])
    distinct, counts = np.unique(present, return_counts=True)
    if not category and len(distinct) > few:
        return present, np.zeros(len(present)), False
    ordered = np.sort(counts)
    at_most = np.concatenate([[0], np.cumsum(ordered)])[np.searchsorted(ordered, counts, side="right")]
    return distinct, at_most / max(len(present), 1), True


def log_mean_exp(surprise: Array) -> Array:
    """Return (n,): the logarithm of the mean of exp over the second axis; the largest entries dominate."""
    xp: Any = namespace(surprise)
    top = largest(surprise)
    return top + xp.log(xp.exp(surprise - top[:, None]).mean(axis=1))


def softmax(surprise: Array) -> Array:
    """Return the softmax over the second axis, the gradient of :func:`log_mean_exp`; rows add up to 1."""
    parts = namespace(surprise).exp(surprise - largest(surprise)[:, None])
    return parts / parts.sum(axis=1)[:, None]
