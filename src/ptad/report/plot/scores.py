"""The distribution of anomaly scores and the threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.report.plot.canvas import INK, NORMAL, QUIET, STRANGE, bare, one_axes


class ScoreHistogramDisplay:
    """Histogram of anomaly scores, red beyond the threshold.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Anomaly scores, higher = more anomalous.
    threshold : float, optional
        Scores above it are alarms.
    rate : float, optional
        The promised false-alarm rate of that threshold.
    y : ndarray of bool, optional
        True for rows known to be anomalies; colours the bars by truth instead of by threshold.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes, after ``plot``.
    """

    def __init__(
        self, *, scores: Any, threshold: float | None = None, rate: float | None = None, y: Any = None
    ) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.threshold, self.rate = threshold, rate
        self.y = None if y is None else np.asarray(y, dtype=bool)
        if self.y is not None and self.y.shape != self.scores.shape:
            raise DataError(f"y has {len(self.y)} values for {len(self.scores)} rows. Give one per row.")

    @classmethod
    def from_estimator(cls, estimator: PTAD, X: Any, y: Any = None, *, ax: Any = None, n_bins: int = 60) -> Self:
        """Score the rows and draw. ``y`` is True (or 1) for known anomalies."""
        calibrated = estimator.calibration_ is not None
        threshold = -float(estimator.offset_) if calibrated else None
        rate = estimator.false_alarm_rate_ if calibrated else None
        return cls(scores=estimator.anomaly_score(X), threshold=threshold, rate=rate, y=y).plot(ax, n_bins=n_bins)

    def plot(self, ax: Any = None, *, n_bins: int = 60) -> Self:
        """Draw on ``ax`` or on a new figure; the score axis is logarithmic, for strange rows lie far out."""
        self.figure_, self.ax_ = one_axes(ax, (8.0, 3.6))
        ax = self.ax_
        edges = self._edges(n_bins)
        if self.y is None:
            beyond = self.scores > (np.inf if self.threshold is None else self.threshold)
            groups = [(self.scores[~beyond], NORMAL, "normal"), (self.scores[beyond], STRANGE, "strange")]
        else:
            groups = [
                (self.scores[~self.y], NORMAL, "known normal"),
                (self.scores[self.y], STRANGE, "known anomalies"),
            ]
        groups = [group for group in groups if len(group[0])]
        ax.hist(
            [g[0] for g in groups],
            edges,
            stacked=True,
            color=[g[1] for g in groups],
            label=[f"{g[2]}: {len(g[0]):,} rows" for g in groups],
        )
        if self.threshold is not None:
            promised = "" if self.rate is None else f" ({100 * self.rate:.2g} % false alarms)"
            ax.axvline(self.threshold, color=INK, linewidth=1.2, linestyle="--", label=f"threshold{promised}")
        ax.set_xscale("log", subs=[])
        decades = np.log10(edges[-1] / edges[0])
        ax.xaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0) if decades < 4 else (1.0,))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set(xlabel="anomaly score", ylabel="rows", xlim=(edges[0], edges[-1]))
        ax.grid(axis="y", color=QUIET, alpha=0.4, linewidth=0.6)
        ax.set_axisbelow(True)
        bare(ax)
        ax.legend(
            frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, columnspacing=1.2
        )
        return self

    def _edges(self, n_bins: int) -> np.ndarray:
        positive = self.scores[self.scores > 0]
        known = [] if self.threshold is None or self.threshold <= 0 else [self.threshold]
        low, high = min([*known, positive.min(initial=np.inf)]), max([*known, positive.max(initial=0.0)])
        if not np.isfinite(low):
            low, high = 1e-3, 1.0
        edges = np.geomspace(low / 1.1, high * 1.1, n_bins + 1)
        if known:  # one edge lies on the threshold, so that no bar has two meanings
            edges[np.argmin(np.abs(np.log(edges[1:-1]) - np.log(known[0]))) + 1] = known[0]
        return edges
