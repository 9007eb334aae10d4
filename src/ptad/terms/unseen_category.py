"""Unseen categories: a value that no training row has, in a column where every value is known by many rows.

The probability of an unseen category is the Good-Turing estimate, the share of training rows whose category occurs only
once: it is near 1 in a column of names and near 0 in a column of colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ptad.arrays import Array, Indices, Matrix, floats, integers, like, namespace, on_device, take_columns
from ptad.layout import MOST_ROWS, ArrayLayout
from ptad.reference import Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, State, TermSettings
from ptad.terms.surprise import Surprise, smoothed


@dataclass(frozen=True)
class UnseenCategorySettings(TermSettings):
    """Settings of :class:`UnseenCategory`."""

    name: ClassVar[str] = "unseen_category"

    @classmethod
    def term(cls) -> type[UnseenCategory]:
        return UnseenCategory


class UnseenCategory(Surprise):
    """Surprise at categories that did not occur among the rows of the fit."""

    reason = Reason.UNSEEN_CATEGORY

    def __init__(self, state: State, reference: Reference, settings: Any) -> None:
        super().__init__(state, reference, settings)
        self._unseen = on_device(state["counts"] == 0, reference.device)
        self._starts = _offsets(reference.features)[:-1]

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Count the rows of every category."""
        features = reference.features
        counts = [
            np.bincount(rows[~np.isnan(rows[:, j]), j].astype(np.int64), minlength=features.n_categories[j] + 1)
            for j in features.categories
        ]
        flat = np.concatenate([*counts, np.empty(0, dtype=np.int64)])
        return cls({"counts": flat, "n_rows": np.array([context.n_rows])}, reference, settings)

    def probability(self) -> Matrix:
        features = self.features
        probability = np.ones(features.n_columns)
        groups = np.split(self._state["counts"], _offsets(features)[1:-1])
        for j, group in zip(features.categories, groups, strict=False):
            once = (group == 1).sum() / max(group.sum(), 1)
            probability[features.column[j]] = smoothed(once, int(self._state["n_rows"][0]))
        return probability

    def occurred(self, rows: Array) -> Array:
        xp: Any = namespace(rows)
        places = self.features.categories
        zeros = xp.zeros_like(take_columns(rows, self.features.starts))
        if not len(places):
            return zeros
        codes = take_columns(rows, places)
        missing = xp.isnan(codes)
        unseen = self._unseen[integers(xp.where(missing, 0.0, codes)) + like(self._starts, rows)] & ~missing
        source = np.arange(self.features.n_columns)  # every column that is not categorical takes the zeros
        source[self.features.column[places]] = self.features.n_columns + np.arange(len(places))
        return take_columns(xp.concatenate([zeros, floats(unseen)], axis=1), source)

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        return {
            "counts": ArrayLayout("int64", (int(_offsets(features)[-1]),), low=0, high=MOST_ROWS),
            "n_rows": ArrayLayout("int64", (1,), low=1, high=MOST_ROWS),
        }


def _offsets(features: Features) -> Indices:
    """Return where the counts of each categorical feature begin in the flat list, and its length."""
    return np.concatenate([[0], np.cumsum(features.n_categories[features.categories] + 1)]).astype(np.int64)
