"""What each original column adds to the score: how far the score falls when the column's cell is hidden.

A strange cell leaves traces beside itself: the rows retrieved for it, and the network's picture of the other columns,
bend towards it. Hiding one cell at a time, as a missing value is hidden, shows whose absence makes the row normal.
It costs one scoring per column.

The falls do not add up by themselves. Columns whose hiding raises the score keep their negative fall; the positive ones
are scaled by one factor per row so that all contributions of the row add up to its score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptad.scoring.parts import Cells, Parts
from ptad.scoring.scorer import Context, Matrix, Scorer

Array = NDArray[np.float64]


def contributions(
    scorer: Scorer, x: Matrix, groups: NDArray[np.int64], parts: Parts, cells: Cells, context: Context
) -> Array:
    """Return (n_rows, n_columns): signed contributions of the original columns that add up to the score."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    value = parts.score - parts.missing
    falls = np.zeros((len(x), len(starts)))
    for column in range(len(starts)):
        hidden = x.copy()
        hidden[:, groups == column] = np.nan
        without = scorer.parts(hidden, context)
        falls[:, column] = value - (without.score - without.missing)
    positive = np.maximum(falls, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    target = value[:, None] - np.minimum(falls, 0.0).sum(axis=1, keepdims=True)
    direct = np.add.reduceat(cells.contributions, starts, axis=1)
    scaled = np.minimum(falls, 0.0) + positive * (target / np.where(total > 0.0, total, 1.0))
    missing = np.add.reduceat(cells.missing, starts, axis=1)
    # Where hiding helps nowhere, the shares of the squared errors have to do.
    return np.asarray(np.where(total > 0.0, scaled + missing, direct), dtype=np.float64)
