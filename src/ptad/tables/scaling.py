"""Centre and scale per encoded column, fitted on training rows in float64."""

from __future__ import annotations

import numpy as np

# Under "standard", a bounded feature (a one-hot column, a share, a cycle) that never varied in training gets this
# scale: a full deviation then stands ten units out, clearly strange beside features of spread one.
FLAT_SCALE = 0.1

# Without a clip, encoded values still end here, so that squares stay finite in float32.
BOUND = 1e9


def fit_scale(block: np.ndarray, low: np.ndarray, high: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale for every column of ``block``.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_encoded)
        Training values, NaN where missing.
    low, high : ndarray of shape (n_encoded,)
        Natural bounds of a feature, NaN where it has none. "minmax" uses them in place of the observed range.
    scaling : {"standard", "minmax"}
        The rule.

    Returns
    -------
    center, scale : ndarray of shape (n_encoded,)
        Encoded value = (value - center) / scale.
    """
    bounded = np.isfinite(low)
    # One contiguous run per column: sums are then taken in the same order however columns are blocked.
    block = np.ascontiguousarray(block.T)
    gone = np.isnan(block)
    empty = gone.all(axis=1)
    smallest = np.where(empty, 0.0, np.where(gone, np.inf, block).min(axis=1, initial=np.inf))
    largest = np.where(empty, 0.0, np.where(gone, -np.inf, block).max(axis=1, initial=-np.inf))
    flat = smallest == largest
    if scaling == "minmax":
        with np.errstate(over="ignore"):
            spread = np.minimum(largest - smallest, np.finfo(np.float64).max)
        center = np.where(bounded, low, smallest)
        return center, np.where(bounded, high - low, np.where(flat, 1.0, spread))
    # A power of two as unit changes no digit and keeps the squares of huge or tiny values in range.
    peak = np.maximum(np.abs(smallest), np.abs(largest))
    unit = np.ldexp(1.0, np.frexp(np.where(peak > 0, peak, 1.0))[1] - 1)
    counts = np.maximum((~gone).sum(axis=1), 1)
    units = np.where(gone, 0.0, block) / unit[:, None]
    mean = units.sum(axis=1) / counts
    deviations = np.where(gone, 0.0, units - mean[:, None])
    spread = np.sqrt((deviations**2).sum(axis=1) / counts) * unit
    # the mean of equal values may miss them by a rounding, which a spread of nearly 0 would blow up
    still = np.where(bounded, FLAT_SCALE, 1.0)
    return np.where(flat, smallest, mean * unit), np.where(flat | (spread == 0), still, spread)


def apply_scale(
    block: np.ndarray, center: np.ndarray, scale: np.ndarray, scaling: str, clip: float | None
) -> np.ndarray:
    """Scale and clip ``block`` to float32; NaN stays NaN."""
    with np.errstate(over="ignore"):
        scaled = (block - center) / scale
    if clip is None:
        low, high = -BOUND, BOUND
    else:
        low, high = -clip, clip + (1.0 if scaling == "minmax" else 0.0)
    return np.asarray(np.clip(scaled, low, high, out=scaled), dtype=np.float32)
