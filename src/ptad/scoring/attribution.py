"""What each original column adds to the score: how far the score falls when the column's cell is hidden.

A strange cell leaves traces beside itself: the rows retrieved for it, and the network's picture of the other columns,
bend towards it. Hiding one cell at a time, as a missing value is hidden, shows whose absence makes the row normal.
It costs one scoring per column.

Hiding a column that nobody can predict lowers the score of every row; strange is a fall beyond the usual ones, that is
beyond the 90 % quantile of the falls of training rows. What stays below it counts as negative; what exceeds it is
scaled by one factor per row so that all contributions of the row add up to its score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptad.scoring.parts import Cells, Parts
from ptad.scoring.scorer import Context, Matrix, Scorer

Array = NDArray[np.float64]
N_USUAL = 128


def contributions(
    scorer: Scorer, x: Matrix, groups: NDArray[np.int64], parts: Parts, cells: Cells, context: Context
) -> Array:
    """Return (n_rows, n_columns): signed contributions of the original columns that add up to the score."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    excess = falls(scorer, x, groups, parts, context) - usual_falls(scorer, groups, context)
    above, below = np.maximum(excess, 0.0), np.minimum(excess, 0.0)
    total = above.sum(axis=1, keepdims=True)
    target = (parts.score - parts.missing)[:, None] - below.sum(axis=1, keepdims=True)
    scaled = below + above * (target / np.where(total > 0.0, total, 1.0))
    missing = np.add.reduceat(cells.missing, starts, axis=1)
    direct = np.add.reduceat(cells.contributions, starts, axis=1)
    # Where hiding helps nowhere, the shares of the squared errors have to do.
    return np.asarray(np.where(total > 0.0, scaled + missing, direct), dtype=np.float64)


def falls(scorer: Scorer, x: Matrix, groups: NDArray[np.int64], parts: Parts, context: Context) -> Array:
    """Return (n_rows, n_columns): the score, missing-value indicators aside, minus that with the column hidden."""
    value = parts.score - parts.missing
    found = np.empty((len(x), groups[-1] + 1))
    for column in range(found.shape[1]):
        hidden = x.copy()
        hidden[:, groups == column] = np.nan
        without = scorer.parts(hidden, context)
        found[:, column] = value - (without.score - without.missing)
    return found


def usual_falls(scorer: Scorer, groups: NDArray[np.int64], context: Context) -> Array:
    """Return (n_columns,): the upper end of the falls of some training rows; worked out once per scorer."""
    if scorer.usual_falls is None:
        rows = scorer.reference_rows[0] if scorer.retrieval is None else scorer.retrieval.rows
        x = rows[:N_USUAL].float().cpu().numpy()
        scorer.usual_falls = np.quantile(falls(scorer, x, groups, scorer.parts(x, context), context), 0.9, axis=0)
    return scorer.usual_falls
