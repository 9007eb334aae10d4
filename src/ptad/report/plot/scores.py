"""The distribution of anomaly scores and the threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.report.numbers import number_text
from ptad.report.plot.canvas import ANOMALY, INK, NORMAL, QUIET, bare, known_anomalies, one_axes, rows_text
from ptad.report.score_histogram import ScoreScale
from ptad.table_model import TableModel

FEWEST_BINS, MOST_BINS = 12, 60


class ScoreHistogramDisplay:
    """Histogram of anomaly scores, red beyond the threshold.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Anomaly scores, higher = more anomalous.
    threshold : float, optional
        Rows with scores above it are flagged.
    rate : float, optional
        The target false-alarm rate of that threshold.
    scale : ScoreScale, optional
        Of the score axis; without it that of the scores themselves.
    y : ndarray of bool, optional
        True for rows known to be anomalies; colours the bars by truth instead of by threshold.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes, after ``plot``.
    """

    def __init__(
        self,
        *,
        scores: Any,
        threshold: float | None = None,
        rate: float | None = None,
        y: Any = None,
        scale: ScoreScale | None = None,
    ) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.scale = scale or ScoreScale.of(self.scores)
        self.threshold, self.rate = threshold, rate
        self.y = None if y is None else known_anomalies(y, len(self.scores))

    @classmethod
    def from_estimator(cls, estimator: TableModel, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Score the rows and draw. ``y`` is True (or 1) for known anomalies."""
        scores = np.asarray(estimator.anomaly_score(X))
        calibration = estimator.detector_.calibration
        if calibration is None:
            return cls(scores=scores, y=y).plot(ax)
        threshold, rate = -float(estimator.offset_), estimator.false_alarm_rate_
        scale = ScoreScale.of(calibration.scores)
        return cls(scores=scores, threshold=threshold, rate=rate, y=y, scale=scale).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` or on a new figure; the score axis is logarithmic far out, where anomalies lie."""
        self.figure_, self.ax_ = one_axes(ax, (8.0, 3.6))
        ax = self.ax_
        edges = self._edges()
        if self.y is None:
            beyond = self.scores > (np.inf if self.threshold is None else self.threshold)
            groups = [(self.scores[~beyond], NORMAL, "not flagged"), (self.scores[beyond], ANOMALY, "flagged")]
        else:
            groups = [
                (self.scores[~self.y], NORMAL, "known normal"),
                (self.scores[self.y], ANOMALY, "known anomalies"),
            ]
        groups = [group for group in groups if len(group[0])]
        ax.hist(
            [g[0] for g in groups],
            edges,
            stacked=True,
            color=[g[1] for g in groups],
            label=[f"{g[2]}: {rows_text(len(g[0]))}" for g in groups],
        )
        if self.threshold is not None:
            target = "" if self.rate is None else f" (target false-alarm rate {100 * self.rate:.2g} %)"
            ax.axvline(self.threshold, color=INK, linewidth=1.2, linestyle="--", label=f"threshold{target}")
        ax.set_xscale("function", functions=(self.scale, self.scale.inverse))
        ax.set_xlim(edges[0], edges[-1])
        ticks = axis_ticks(self.scale, edges[0], edges[-1])
        ax.set_xticks(ticks, [number_text(tick) for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.set(xlabel="anomaly score (symmetric log scale)", ylabel="count of rows")
        ax.grid(axis="y", color=QUIET, alpha=0.4, linewidth=0.6)
        ax.set_axisbelow(True)
        bare(ax)
        ax.legend(
            frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, columnspacing=1.2
        )
        return self

    def _edges(self) -> np.ndarray:
        # Rice's rule: few rows in many bins look like a comb
        n_bins = int(np.clip(np.ceil(2.0 * np.cbrt(len(self.scores))), FEWEST_BINS, MOST_BINS))
        known = [] if self.threshold is None else [self.threshold]
        places = self.scale(np.concatenate([self.scores, known]))
        margin = max(0.02 * float(np.ptp(places)), 1e-3)
        grid = np.linspace(places.min() - margin, places.max() + margin, n_bins + 1)
        edges = self.scale.inverse(grid)
        if known:  # one edge lies on the threshold, so that no bar has two meanings
            edges[np.argmin(np.abs(grid[1:-1] - self.scale(np.array(known)))) + 1] = known[0]
        return edges


def axis_ticks(scale: ScoreScale, low: float, high: float, most: int = 9) -> list[float]:
    """Return round numbers of the axis, evenly enough spread: 0, and 1, 2 and 5 times powers of ten on both sides."""
    powers = np.arange(-6, 16)
    steps = np.sort(np.concatenate([10.0**powers, 2.0 * 10.0**powers, 5.0 * 10.0**powers]))
    left, right = float(scale(np.array(low))), float(scale(np.array(high)))
    apart = (right - left) / most
    found: list[float] = []
    # from the middle outwards: the round numbers nearest to normal rows are kept
    for value in [0.0, *sorted([*steps, *-steps], key=lambda v: abs(float(scale(np.array(v)))))]:
        place = float(scale(np.array(value)))
        if left <= place <= right and all(abs(place - float(scale(np.array(v)))) >= apart for v in found):
            found.append(float(value))
    return sorted(found)
