"""Unseen categories: a value that no training row has, in a column where every value is known by many rows.

The chance of an unseen category is estimated as Good and Turing do, by the share of training rows whose category
occurs only once: in a column of names nearly every row is new, in a column of colours none is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, columns, floats, integers, like, namespace, on_device
from ptad.layout import MOST_ROWS, ArrayLayout
from ptad.reference import Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, State, TermSettings
from ptad.terms.surprise import Surprise

Matrix = NDArray[np.float64]


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

    def __init__(self, counts: NDArray[np.int64], n_rows: int, reference: Reference, settings: Any) -> None:
        features = reference.features
        groups = np.split(counts, np.cumsum(features.n_categories[features.categories] + 1)[:-1])
        chance = np.ones(features.n_columns)
        for j, group in zip(features.categories, groups if len(counts) else [], strict=False):
            once = (group == 1).sum() / max(group.sum(), 1)
            chance[features.column[j]] = (once + 0.5 / n_rows) / (1.0 + 0.5 / n_rows)
        super().__init__(chance, reference, settings)
        self._counts, self._n_rows = counts, n_rows
        self._new = on_device(counts == 0, reference.device)
        self._starts = np.concatenate([[0], np.cumsum(features.n_categories[features.categories] + 1)])[:-1]

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Count the rows of every category."""
        features = reference.features
        counts = [
            np.bincount(rows[~np.isnan(rows[:, j]), j].astype(np.int64), minlength=features.n_categories[j] + 1)
            for j in features.categories
        ]
        together = np.concatenate([*counts, np.empty(0, dtype=np.int64)])
        return cls(together, context.n_rows, reference, settings)

    def happened(self, rows: Array) -> Array:
        xp: Any = namespace(rows)
        places = self.features.categories
        nothing = xp.zeros_like(columns(rows, self.features.starts))
        if not len(places):
            return nothing
        codes = columns(rows, places)
        missing = xp.isnan(codes)
        new = self._new[integers(xp.where(missing, 0.0, codes)) + like(self._starts, rows)] & ~missing
        source = np.arange(self.features.n_columns)  # every other column takes its zeros
        source[self.features.column[places]] = self.features.n_columns + np.arange(len(places))
        return columns(xp.concatenate([nothing, floats(new)], axis=1), source)

    def state(self) -> State:
        return {"counts": self._counts, "n_rows": np.array([self._n_rows])}

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        n_codes = int((features.n_categories[features.categories] + 1).sum())
        return {
            "counts": ArrayLayout("int64", (n_codes,), low=0, high=MOST_ROWS),
            "n_rows": ArrayLayout("int64", (1,), low=1, high=MOST_ROWS),
        }

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        return cls(state["counts"], int(state["n_rows"][0]), reference, settings)
