"""Rows as points: every number twice, by its value and by its rank; every category one-hot.

Values keep distances, ranks resist outliers and heavy tails; both together measure better than either.

Shape
-----
rows  (n, n_features), encoded by the schema; NaN = missing
      -> points (n, n_coordinates): values of the numbers, one coordinate per category, ranks of the numbers
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ptad.arrays import (
    Array,
    GroupSum,
    Indices,
    Matrix,
    column_range,
    count_below,
    floats,
    like,
    namespace,
    on_device,
    take_columns,
)
from ptad.tables.features import Features

CLIP = 1.0  # how far a value may lie outside the training range, in widths of that range
COMMON = 0.05  # share of the rows from which on a category is common; numbers in the outer such share are not
N_KNOTS = 1024  # ranks are counted among this many quantiles of the training rows


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map from encoded rows to points, fitted on reference rows."""

    features: Features
    rank_weight: float
    low: Array  # (n_numbers,), the smallest value of every number among the reference rows
    width: Array  # (n_numbers,), its range
    knots: Array  # (n_numbers, n_knots), its sorted values, in units of the range
    median: Array  # (n_numbers,), its median, which stands in for a missing value
    category_lengths: Array  # (n_known,), of the one-hot coordinates; 0 for a category without a reference row: unseen
    common: Array  # (n_known,), 1 for categories that are common among the reference rows, 0 for the others
    device: str = "cpu"

    @classmethod
    def fit(cls, rows: Matrix, features: Features, rank_weight: float, category_weight: float) -> Self:
        numbers = rows[:, features.numbers]
        missing = np.isnan(numbers)
        low, high = (np.where(missing.all(axis=0), 0.0, end) for end in column_range(numbers))
        with np.errstate(over="ignore"):
            width = np.where(high > low, np.minimum(high - low, np.finfo(np.float64).max), 1.0)
            unit = np.clip((numbers - low) / width, 0.0, 1.0)
        knots = np.empty((len(low), min(N_KNOTS, len(rows))))
        median = np.zeros(len(low))
        for j in range(len(low)):  # over columns; each has its own number of missing cells
            present = np.sort(unit[~missing[:, j], j])
            if len(present):
                knots[j] = present[np.linspace(0, len(present) - 1, knots.shape[1]).round().astype(np.int64)]
                median[j] = present[(len(present) - 1) // 2]
            else:
                knots[j] = 0.0
        widths = features.n_categories[features.categories]
        counts = [
            np.bincount(codes[codes < width].astype(np.int64), minlength=width)  # neither unseen nor missing ones
            for codes, width in zip(rows.T[features.categories], widths, strict=True)
        ]
        share = np.concatenate([*counts, np.empty(0)]) / len(rows)
        category_lengths, common = category_weight * (share > 0.0), (share >= COMMON) * 1.0
        return cls(features, rank_weight, low, width, knots, median, category_lengths, common)

    def to(self, device: str) -> Coordinates:
        """Return the same map for rows on that device."""
        names = ("low", "width", "knots", "median", "category_lengths", "common")
        return replace(self, device=device, **{name: on_device(getattr(self, name), device) for name in names})

    @cached_property
    def column(self) -> Indices:
        """The column of the table that each coordinate comes from."""
        features = self.features
        numbers = features.column[features.numbers]
        categories = np.repeat(features.column[features.categories], features.n_categories[features.categories])
        return np.concatenate([numbers, categories, numbers])

    @cached_property
    def _codes(self) -> tuple[Indices, Indices]:
        """The feature and the category of every one-hot coordinate."""
        widths = self.features.n_categories[self.features.categories]
        return np.repeat(self.features.categories, widths), np.concatenate([np.arange(width) for width in widths])

    @property
    def n_by_value(self) -> int:
        """The number of coordinates that are not ranks; they come first."""
        return len(self.column) - len(self.features.numbers)

    @cached_property
    def _sums(self) -> tuple[GroupSum, GroupSum, GroupSum, GroupSum]:
        """The sums by column: of all coordinates, those by value, categories alone and ranks alone."""
        n_numbers, end, n = len(self.features.numbers), self.n_by_value, len(self.column)
        spans = (slice(n), slice(end), slice(n_numbers, end), slice(end, n))
        every, by_value, categories, ranks = (
            GroupSum(self.column[span], self.features.n_columns, self.device) for span in spans
        )
        return every, by_value, categories, ranks

    def by_column(self, cells: Array) -> Array:
        """Add up coordinates by column, all of them or the first ones, which are by value: (n, n_columns)."""
        every, by_value, _, _ = self._sums
        return by_value(cells) if cells.shape[1] == self.n_by_value else every(cells)

    def is_common(self, points: Array) -> Array:
        """Return (n, n_columns): whether a value by itself is common: no extreme rank, or a common category."""
        n_numbers, end = len(self.features.numbers), self.n_by_value
        _, _, categories, ranks = self._sums
        from_median = namespace(points).abs(points[:, end:] - 0.5 * self.rank_weight)
        # a little more than the limit, so that a rank on it is common whatever the last digit
        limit = like(np.array((0.5 - 0.5 * COMMON) * self.rank_weight + 1e-9), points)
        rare = ranks(floats(from_median > limit))
        known = categories(floats(points[:, n_numbers:end] > 0.0) * self.common)
        category = np.zeros(self.features.n_columns)
        category[self.features.column[self.features.categories]] = 1.0
        return (rare == 0.0) & (known >= like(category, points))

    def __call__(self, rows: Array) -> Array:
        """Return the rows as points."""
        xp: Any = namespace(rows)
        features = self.features
        with np.errstate(over="ignore"):  # what is out of all range is clipped
            value = (take_columns(rows, features.numbers) - self.low) / self.width
        value = xp.where(xp.isnan(value), self.median, xp.clip(value, -CLIP, 1.0 + CLIP))
        below, up_to = count_below(self.knots, value)
        rank = floats(below + up_to) * (0.5 * self.rank_weight / self.knots.shape[1])
        if not len(features.categories):
            return xp.concatenate([value, rank], axis=1)
        source, code = self._codes
        categories = floats(take_columns(rows, source) == like(code, rows)) * self.category_lengths
        return xp.concatenate([value, categories, rank], axis=1)
