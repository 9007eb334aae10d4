"""Figures of rows for any model: scores, cells, and the contributions to one score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.errors import DataError, SettingError
from ptad.explanation import Explanation
from ptad.model import Model
from ptad.report.notebook import row_text, written_reasons
from ptad.report.numbers import count_text, number_text
from ptad.report.plot import canvas
from ptad.report.score_histogram import ScoreScale

FEWEST_BINS, MOST_BINS = 12, 60


class RowPlots:
    """Figures of rows; ``_model`` is a fitted model of any preset."""

    _model: Model

    def scores(self, X: Any, labels: Any = None, *, ax: Any = None) -> Any:
        """Draw the distribution of anomaly scores (higher is more anomalous) and the threshold.

        Parameters
        ----------
        X : table or array
            Rows to score.
        labels : array of shape (n_rows,), optional
            True or 1 for known anomalies; the bars are coloured by them instead of by the threshold.
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        model = self._model
        scores = np.asarray(model.anomaly_score(X))
        calibration = model.detector_.calibration
        threshold = None if calibration is None else -float(model.offset_)
        scale = ScoreScale.of(scores if calibration is None else calibration.scores)
        if labels is None:
            red, names = scores > (np.inf if threshold is None else threshold), ("not flagged", "flagged")
        else:
            red, names = canvas.known_anomalies(labels, len(scores)), ("known normal", "known anomalies")
        groups = [(scores[~red], canvas.NORMAL, names[0]), (scores[red], canvas.ANOMALY, names[1])]
        groups = [group for group in groups if len(group[0])]
        edges = _edges(scores, threshold, scale)
        ax = canvas.one_axes(ax, (8.0, 3.6))
        ax.hist(
            [g[0] for g in groups],
            edges,
            stacked=True,
            color=[g[1] for g in groups],
            label=[f"{g[2]}: {count_text(len(g[0]), 'row')}" for g in groups],
        )
        if threshold is not None:
            target = f"threshold (target false-alarm rate {100 * model.false_alarm_rate_:.2g} %)"
            ax.axvline(threshold, color=canvas.INK, linewidth=1.2, linestyle="--", label=target)
        ax.set_xscale("function", functions=(scale, scale.inverse))
        ax.set_xlim(edges[0], edges[-1])
        ticks = axis_ticks(scale, edges[0], edges[-1])
        ax.set_xticks(ticks, [number_text(tick) for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.set(xlabel="anomaly score (symmetric log scale)", ylabel="count of rows")
        canvas.bare(ax, grid="y")
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
        ax.legend(frameon=False, fontsize="small", ncols=3, columnspacing=1.2, **place)
        return ax

    def cells(self, X: Any, top: int = 20, *, n_columns: int = canvas.MOST_NAMES, ax: Any = None) -> Any:
        """Draw the rows with the highest scores, cell by cell: darker where a cell contributes more.

        Fully red is a cell that makes up half of the way from a typical normal row to the threshold.

        Parameters
        ----------
        X : table or array
            Rows to score.
        top : int
            How many rows to draw.
        n_columns : int
            How many columns of a wide table to draw, those that contribute most.
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        model = self._model
        explanation = model.explain(X)
        order = np.argsort(-explanation.score_values, kind="stable")[:top]
        cells = explanation.contribution_values[order]
        columns = np.sort(np.argsort(-cells.sum(axis=0), kind="stable")[:n_columns])
        cells = cells[:, columns]
        calibration = model.detector_.calibration
        full = float(cells.max(initial=0.0))
        if calibration is not None:
            full = -float(model.offset_ + np.median(calibration.scores)) / 2.0
        ax = canvas.one_axes(ax, (min(3.0 + 0.26 * len(columns), 14.0), min(2.4 + 0.2 * len(order), 12.0)))
        heat = np.clip(cells / full, 0.0, 1.0) if full > 0 else np.zeros_like(cells)
        image = ax.imshow(heat, aspect="auto", cmap=canvas.pyplot().get_cmap("Reds"), vmin=0.0, vmax=1.0)
        canvas.name_ticks(ax.xaxis, [explanation.names[j] for j in columns], rotation=90, fontsize="small")
        canvas.name_ticks(ax.yaxis, [str(row) for row in order], fontsize="small")
        ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(order) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=0.8)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("row, the highest score first")
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.02)
        bar.outline.set_visible(False)
        most = "largest" if calibration is None else "half-way to\nthe threshold\nor more"
        bar.set_ticks([0.0, 1.0], labels=["none", most])
        return ax


def _edges(scores: Matrix, threshold: float | None, scale: ScoreScale) -> Matrix:
    # Rice's rule: few rows in many bins look like a comb
    n_bins = int(np.clip(np.ceil(2.0 * np.cbrt(len(scores))), FEWEST_BINS, MOST_BINS))
    thresholds = [] if threshold is None else [threshold]
    places = scale(np.concatenate([scores, thresholds]))
    margin = max(0.02 * float(np.ptp(places)), 1e-3)
    grid = np.linspace(places.min() - margin, places.max() + margin, n_bins + 1)
    edges = scale.inverse(grid)
    if thresholds:  # one edge is the threshold, so that no bar has two colours
        edges[np.argmin(np.abs(grid[1:-1] - scale(np.array(thresholds)))) + 1] = threshold
    return edges


def axis_ticks(scale: ScoreScale, low: float, high: float) -> list[float]:
    """Return at most ten round numbers for the axis: 0, and 1, 2 and 5 times powers of ten on both sides."""
    powers = np.arange(-6, 16)
    steps = np.sort(np.concatenate([10.0**powers, 2.0 * 10.0**powers, 5.0 * 10.0**powers]))
    left, right = float(scale(np.array(low))), float(scale(np.array(high)))
    distance = (right - left) / 9
    ticks: dict[float, float] = {}  # value: position
    # from the middle outwards: round numbers near the scores of normal rows come first
    for value in [0.0, *sorted([*steps, *-steps], key=lambda v: abs(float(scale(np.array(v)))))]:
        place = float(scale(np.array(value)))
        if left <= place <= right and all(abs(place - other) >= distance for other in ticks.values()):
            ticks[float(value)] = place
    return sorted(ticks)


def draw_contributions(explanation: Explanation, row: int, n: int, ax: Any) -> Any:
    """Draw the ``n`` columns of a row with the largest contributions, with observed and expected values."""
    n_rows = len(explanation.contribution_values)
    if not -n_rows <= row < n_rows:
        raise DataError(f"There is no row {row}: the explanation has {n_rows:,} rows, counted from 0.")
    if n < 1:
        raise SettingError(f"'n' must be at least 1, the number of columns to draw. Got {n} instead.")
    row %= n_rows
    reasons = written_reasons(explanation, row, n)
    ax = canvas.one_axes(ax, (8.4, 1.3 + 0.46 * len(reasons)))
    labels = []
    for place, reason in enumerate(reasons):
        value = reason.contribution
        ax.barh(place, value, color=canvas.ANOMALY if value > 0.0 else canvas.NORMAL, height=0.62)
        beside = {"xytext": (4 if value >= 0.0 else -4, 0), "ha": "left" if value >= 0.0 else "right"}
        text = number_text(value, 3)
        ax.annotate(text, (value, place), textcoords="offset points", va="center", fontsize="small", **beside)
        values = f"{reason.observed}, expected {reason.expected}" if reason.expected else reason.observed
        labels.append(f"{canvas.shortened(reason.column)}\n{canvas.shortened(values, 44)}")
    ax.set_yticks(range(len(reasons)), labels, fontsize="small")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.axvline(0.0, color=canvas.QUIET, linewidth=1.0)
    rest = len(explanation.names) - len(reasons)
    ax.set_xlabel(f"contribution to the score{f'; {rest:,} more not shown' if rest else ''}")
    score = number_text(float(explanation.score_values[row]), 4)
    title = f"R{canvas.shortened(row_text(explanation, row), 60)[1:]}: anomaly score {score}"
    ax.set_title(title, loc="left", fontsize="medium")
    ax.margins(x=0.16)
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(reasons)), [canvas.shortened(reason.reason, 48) for reason in reasons], fontsize="small")
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    canvas.bare(ax, grid="x")
    ax.spines["left"].set_visible(False)
    return ax
