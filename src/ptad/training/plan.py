"""Who learns from which rows: the members of a fit, and the rows kept away from each for calibration.

``cross``  the rows are cut into folds; each fold's member learns from the other folds and judges its own. No row is
           lost to calibration, which is what small tables need.
``split``  one member; a share of the rows is kept for calibration only. Cheaper, and exact for large tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptad.config import Config

CALIBRATION_SHARE, MAX_CALIBRATION_ROWS = 0.2, 10_000
VALIDATION_SHARE, MAX_VALIDATION_ROWS = 0.1, 2_000

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Member:
    """One network to be: its training rows, rows that stop its training, rows that it judges for calibration."""

    train: Rows
    validation: Rows
    calibration: Rows
    scores: bool  # whether it takes part in scoring new rows


def plan_members(n_rows: int, config: Config, rng: np.random.Generator) -> list[Member]:
    """Return the members of a fit of ``n_rows`` rows."""
    order = rng.permutation(n_rows)
    nothing = order[:0]
    method = config.calibration
    if method == "auto":
        method = "cross" if n_rows < config.cross_below else "split"

    if method == "none":
        return [_with_validation(order, nothing, config)]
    if method == "split":
        n_calibration = min(max(1, int(CALIBRATION_SHARE * n_rows)), MAX_CALIBRATION_ROWS)
        return [_with_validation(order[n_calibration:], order[:n_calibration], config)]

    folds = np.array_split(order, min(config.n_folds, n_rows))
    scores = config.members == "folds"
    members = [
        # One scalar, the common stopping step, is all that the members learn from the folds they judge.
        Member(train=np.concatenate(folds[:i] + folds[i + 1 :]), validation=fold, calibration=fold, scores=scores)
        for i, fold in enumerate(folds)
    ]
    if not scores:
        members.insert(0, _with_validation(order, nothing, config))
    return members


def _with_validation(rows: Rows, calibration: Rows, config: Config) -> Member:
    n_validation = 0
    if config.patience is not None and len(rows) > 1:
        n_validation = min(max(1, int(VALIDATION_SHARE * len(rows))), MAX_VALIDATION_ROWS)
    return Member(train=rows[n_validation:], validation=rows[:n_validation], calibration=calibration, scores=True)
