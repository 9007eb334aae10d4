"""Conformal calibration: from scores of normal rows that the network did not learn from to p-values and thresholds.

With n calibration scores, p(s) = (1 + number of scores >= s) / (n + 1). For a normal row exchangeable with them, the
chance of p <= a is at most a: alarms at p <= a have the promised false-alarm rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ptad.errors import SettingError

Array = NDArray[np.float64]
DEFAULT_RATE = 0.01


class Calibration:
    """Sorted scores of held-out normal rows."""

    def __init__(self, scores: Array) -> None:
        self.scores = np.sort(np.asarray(scores, dtype=np.float64))

    @property
    def smallest_rate(self) -> float:
        """The smallest false-alarm rate that this number of rows can promise."""
        return 1.0 / (len(self.scores) + 1)

    def p_value(self, scores: Array) -> Array:
        """Return how often a normal row is at least this strange."""
        n = len(self.scores)
        at_least = n - np.searchsorted(self.scores, scores, side="left")
        return np.asarray((1.0 + at_least) / (n + 1.0), dtype=np.float64)

    def rate(self, wanted: float | str) -> float:
        """Return the rate in force: the wanted one, or for "auto" 0.01 or the smallest that is supported."""
        if wanted == "auto":
            return max(DEFAULT_RATE, self.smallest_rate)
        rate = float(wanted)
        if not 0.0 < rate < 1.0:
            raise SettingError(
                f"The 'false_alarm_rate' parameter of PTAD must be 'auto' or a float in the range (0.0, 1.0). "
                f"Got {wanted!r} instead."
            )
        if rate < self.smallest_rate:
            n = len(self.scores)
            raise SettingError(
                f"A false_alarm_rate of {rate:g} cannot be promised from {n} calibration rows: the smallest possible "
                f"is 1/({n} + 1) = {self.smallest_rate:.3g}. Fit with at least {1 / rate - 1:.0f} calibration "
                "rows, ask for a larger rate, or use 'auto'."
            )
        return rate

    def threshold(self, rate: float) -> float:
        """Return t with: score > t exactly when p_value <= rate."""
        n = len(self.scores)
        # 1e-9 keeps a rate such as 0.1 from falling short of 1/10 in floating point.
        allowed = min(math.floor(rate * (n + 1) + 1e-9), n) - 1
        return float(self.scores[n - 1 - allowed])
