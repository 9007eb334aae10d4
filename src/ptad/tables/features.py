"""The features of encoded rows: the column of each, and whether it is numeric or categorical."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of encoded rows."""

    #: (n_features,), the column of the table that each feature comes from, ascending. A date or a text has several.
    column: Indices
    #: 0 for a numeric feature. For a categorical one the number K of known values: their codes are 0 to K - 1, and K is
    #: the code of unseen values.
    n_categories: Indices
    #: Half the smallest step of the values in the table; 0 if they have none.
    resolution: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def numeric(cls, n_features: int) -> Features:
        """Return numeric features, one per column."""
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
