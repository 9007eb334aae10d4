"""What the network makes of a row, per column of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptad.tables.features import Features
from ptad.terms.base import Array, Reason


@dataclass
class Cells:
    """What plots and experiments look at; arrays of the same kind as the rows."""

    contributions: Array  # (n, n_columns), rows add up to the score
    missing: Array  # (n, n_columns), the part of it that comes from missing-value indicators
    masking_rate: Array  # (n, n_columns), share of the column's latent that the P-space masks hide
    data_mask: Array  # (n, n_columns), the soft mask
    nearest_basis: Array  # (n,), number of the matched basis vector, -1 where there are none
    nearest_prototype: Array  # (n,), number of the matched prototype, -1 where there are none
    expected: Array  # (n, n_features), in the units of the rows


def reasons(rows: NDArray[np.float64], features: Features) -> NDArray[np.int64]:
    """Return the reason of every column, (n, n_columns): missing, an unseen category, or an unusual value."""
    known = np.where(features.n_categories > 0, features.n_categories, np.inf)
    missing = np.logical_and.reduceat(np.isnan(rows), features.starts, axis=1)
    unseen = np.logical_or.reduceat(rows >= known, features.starts, axis=1)
    found = np.where(unseen, Reason.UNSEEN_CATEGORY, Reason.UNUSUAL_VALUE)
    return np.where(missing, Reason.MISSING, found).astype(np.int64)
