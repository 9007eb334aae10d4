"""What a matrix of encoded rows holds: for every feature its column, and whether it is a number or a category."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of encoded rows.

    Attributes
    ----------
    column : ndarray of shape (n_features,)
        The column of the table that each feature comes from, in ascending order. A date or a text has several.
    n_categories : ndarray of shape (n_features,)
        0 for a number. For a category the number K of known values: their codes are 0 to K - 1, and K is a category
        never seen in training.
    resolution : ndarray of shape (n_features,)
        How far apart two values may be and still read alike in the table; 0 if they have no smallest step.
    """

    column: Indices
    n_categories: Indices
    resolution: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def numeric(cls, n_features: int) -> Features:
        """Return features that are all numbers, one per column."""
        return cls(np.arange(n_features), np.zeros(n_features, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def n_columns(self) -> int:
        return int(self.column[-1]) + 1 if len(self.column) else 0

    @cached_property
    def starts(self) -> Indices:
        """The first feature of every column."""
        return np.flatnonzero(np.diff(self.column, prepend=-1))

    @cached_property
    def numbers(self) -> Indices:
        """The numeric features."""
        return np.flatnonzero(self.n_categories == 0)

    @cached_property
    def categories(self) -> Indices:
        """The categorical features."""
        return np.flatnonzero(self.n_categories > 0)
