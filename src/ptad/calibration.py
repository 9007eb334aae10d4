"""Conformal calibration: p-values and thresholds from the scores of held-out normal rows.

With n calibration scores, p(s) = (1 + number of scores >= s) / (n + 1). For a normal row exchangeable with them the
probability of p <= a is at most a: rows flagged at p <= a keep the false-alarm rate a.

A calibration row and a new row go through the same code with the same frozen state, fitted without the calibration
row: scaling, ranks, categories, reference rows, counts, units, network. ``folds`` fits a whole pipeline without each
fold of the rows; the final fit uses all rows, which small tables need. ``split`` holds out a share of the rows and fits
once: exact, and cheap for large tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Indices, Matrix, like, namespace, rounded, softplus
from ptad.errors import SettingError
from ptad.settings import Settings, setting

DEFAULT_RATE = 0.01
FOLDED_ROWS, FOLDED_CELLS = 50_000, 1_000_000  # folds times rows, and times cells, up to which folds are cheap
UNIT_GROUPS = 10  # a row's units come from the other groups of calibration rows


@dataclass(frozen=True)
class CalibrationSettings(Settings):
    """Settings of the calibration: how rows are held out to give the threshold."""

    name: ClassVar[str] = "calibration"

    method: str = setting("auto", choices=("auto", "folds", "split", "none"))
    split_from: int = setting(5_000, low=2, high=10**9)  # "auto": folds below this number of rows, a split from it on
    folds: int = setting(10, low=2, high=1000)
    most_folds: int = setting(100, low=2, high=1000)  # small tables take more: a fold's fit misses fewer rows then
    share: float = setting(0.2, low=0.0, high=0.9, open_low=True)  # of the rows, held out by a split
    rows: int = setting(10_000, low=1, high=10**7)  # held out by a split at most


@dataclass(frozen=True)
class Plan:
    """The calibration folds and the rows of the final fit."""

    folds: list[Indices]  # rows of each fold, which are scored by a fit without them; empty without calibration
    final: Indices | None  # rows of the fit that scores new rows; None if that is the fit without the only fold

    @property
    def n_calibration(self) -> int:
        return sum(map(len, self.folds))


def plan_calibration(n_rows: int, n_features: int, settings: CalibrationSettings, rng: np.random.Generator) -> Plan:
    """Return the plan for a table of that size."""
    method = settings.method
    if method == "auto":
        method = "folds" if n_rows < settings.split_from else "split"
    order = rng.permutation(n_rows)
    if method == "none":
        return Plan([], order)
    if method == "split":
        n_calibration = min(max(1, int(settings.share * n_rows)), settings.rows)
        return Plan([order[:n_calibration]], None)
    cheap = min(FOLDED_ROWS // n_rows, FOLDED_CELLS // (n_rows * max(n_features, 1)))
    n_folds = min(max(settings.folds, min(cheap, settings.most_folds)), n_rows)
    return Plan(np.array_split(order, n_folds), order)


@dataclass(frozen=True)
class Units:
    """Standardises the values of the terms: their mean and spread over calibration rows.

    The standardised value z of a term becomes log(1 + exp(2 z)) / 2, which is close to z for anomalies and to 0 for
    normal rows: a low value of one term does not cancel a high value of another.
    """

    mean: Matrix  # (n_terms,)
    spread: Matrix
    standardised: NDArray[np.bool_]  # False for terms whose values stay as they are

    MIN_SPREAD = 0.05  # added to every spread: a term that never varied stays finite

    @classmethod
    def fit(cls, values: Matrix, standardised: NDArray[np.bool_]) -> Units:
        """Return the units of (n, n_terms) values."""
        return cls(values.mean(axis=0), values.std(axis=0) + cls.MIN_SPREAD, standardised)

    def __call__(self, values: Any) -> Any:
        """Return (n, n_terms): comparable values, at least 0 where a term is standardised."""
        z = (values - like(self.mean, values)) / like(self.spread, values)
        return namespace(values).where(like(self.standardised, values), 0.5 * softplus(2.0 * z), values)


def calibration_scores(
    values: Matrix, groups: Indices, standardised: NDArray[np.bool_], weights: Matrix
) -> tuple[Matrix, Units]:
    """Return the scores of calibration rows, each group standardised with the other groups only.

    Also return the units of all rows, for new rows. ``values`` (n, n_terms) are from terms that were fitted without the
    row; ``groups`` (n,) are numbers from 0 on.
    """
    all_units = Units.fit(values, standardised)
    scores = np.empty(len(values))
    for group in range(int(groups.max()) + 1):
        members = groups == group
        units = all_units if members.all() else Units.fit(values[~members], standardised)
        scores[members] = add_up(units(values[members]), weights)
    return scores, all_units


def add_up(standardised_values: Any, weights: Any) -> Any:
    """Return the score: the weighted sum, rounded to single precision, independent of the order of additions."""
    return rounded((standardised_values * weights).sum(axis=1))


class Calibration:
    """Sorted scores of calibration rows."""

    def __init__(self, scores: Matrix) -> None:
        self.scores = np.sort(np.asarray(scores, dtype=np.float64))

    @property
    def smallest_rate(self) -> float:
        """The smallest false-alarm rate that this number of rows supports."""
        return 1.0 / (len(self.scores) + 1)

    def p_value(self, scores: Matrix) -> Matrix:
        """Return how often a normal row has at least this score."""
        n = len(self.scores)
        at_least = n - np.searchsorted(self.scores, scores, side="left")
        return np.asarray((1.0 + at_least) / (n + 1.0), dtype=np.float64)

    def rate(self, target: float | str) -> float:
        """Return the rate in force: the target, or for "auto" 0.01 or the smallest that is supported."""
        check_supported(target, len(self.scores))
        return max(DEFAULT_RATE, self.smallest_rate) if target == "auto" else float(target)

    def threshold(self, rate: float) -> float:
        """Return t with: score > t exactly when p_value <= rate."""
        n = len(self.scores)
        # 1e-9 keeps a rate such as 0.1 from falling short of 1/10 in floating point.
        allowed = min(math.floor(rate * (n + 1) + 1e-9), n) - 1
        return float(self.scores[n - 1 - allowed])


def check_rate(rate: Any) -> None:
    """Raise unless the false-alarm rate is valid: "auto", or a number between 0 and 1."""
    number = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
    if rate != "auto" and not (number and 0.0 < float(rate) < 1.0):
        raise SettingError(
            "The 'false_alarm_rate' parameter of PTAD must be 'auto' or a number between 0 and 1. "
            f"Got {rate!r} instead."
        )


def check_supported(rate: float | str, n_rows: int) -> None:
    """Raise unless ``n_rows`` calibration rows support the false-alarm rate."""
    check_rate(rate)
    smallest = 1.0 / (n_rows + 1)
    if rate != "auto" and float(rate) < smallest:
        raise SettingError(
            f"A false-alarm rate of {float(rate):g} needs at least {rows_needed(float(rate)):,} calibration rows; "
            f"there are {n_rows:,}, which support {smallest:.3g} at best. Give more rows, set a larger rate, or "
            "use 'auto'."
        )


def rows_needed(rate: float) -> int:
    """Return the smallest number of calibration rows that supports a false-alarm rate."""
    return math.ceil(min(1.0 / rate, 2.0**53) - 1.0 - 1e-9)  # the smallest rates would need more than can be counted
