"""Rows of six columns that follow from two hidden factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIXING = np.random.default_rng(5).normal(size=(2, 6))


def draw(n: int, seed: int, shift: float = 0.0) -> NDArray[np.float64]:
    """Draw rows; a shift moves half of the columns."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ MIXING + 0.1 * rng.normal(size=(n, 6))
    rows[:, :3] += shift
    return rows
