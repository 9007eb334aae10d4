"""Why one row has its score: its columns with the largest contributions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.errors import DataError, SettingError
from ptad.explanation import Explanation
from ptad.report.notebook import row_reasons, row_text
from ptad.report.numbers import number_text
from ptad.report.plot.canvas import ANOMALY, NORMAL, QUIET, bare, one_axes, shortened


class ContributionDisplay:
    """Bars of what each column adds to the score of one row, with observed and expected values.

    Parameters
    ----------
    contributions : ndarray of shape (n_columns,)
        What each column adds to the score.
    labels, reasons : sequence of str
        What is written to the left and to the right of each bar.
    title : str
        Above the figure.
    rest : int
        How many further columns are not drawn.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes, after ``plot``.
    """

    def __init__(self, *, contributions: Any, labels: Any, reasons: Any, title: str = "", rest: int = 0) -> None:
        self.contributions = np.asarray(contributions, dtype=np.float64)
        self.labels, self.reasons = [str(label) for label in labels], [str(reason) for reason in reasons]
        self.title, self.rest = title, rest

    @classmethod
    def from_explanation(cls, explanation: Explanation, row: int = 0, *, n: int = 10) -> Self:
        """Take the ``n`` columns of a row with the largest contributions."""
        n_rows = len(explanation.contribution_values)
        if not -n_rows <= row < n_rows:
            raise DataError(f"There is no row {row}: the explanation has {n_rows:,} rows, counted from 0.")
        if n < 1:
            raise SettingError(f"'n' must be at least 1, the number of columns to draw. Got {n} instead.")
        row %= n_rows
        found = row_reasons(explanation, row, n)
        labels = []
        for reason in found:
            values = f"{reason.observed}, expected {reason.expected}" if reason.expected else reason.observed
            labels.append(f"{shortened(reason.column)}\n{shortened(values, 44)}")
        score = number_text(float(explanation.score_values[row]), 4)
        return cls(
            contributions=[reason.contribution for reason in found],
            labels=labels,
            reasons=[shortened(reason.reason, 48) for reason in found],
            title=f"R{shortened(row_text(explanation, row), 60)[1:]}: anomaly score {score}",
            rest=len(explanation.names) - len(found),
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` or on a new figure."""
        n_bars = len(self.contributions)
        self.figure_, self.ax_ = one_axes(ax, (8.4, 1.3 + 0.46 * n_bars))
        ax = self.ax_
        places = np.arange(n_bars)
        colours = [ANOMALY if value > 0.0 else NORMAL for value in self.contributions]
        ax.barh(places, self.contributions, color=colours, height=0.62)
        ax.set_yticks(places, self.labels, fontsize="small")
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.axvline(0.0, color=QUIET, linewidth=1.0)
        further = f"; {self.rest:,} more not shown" if self.rest else ""
        ax.set_xlabel(f"contribution to the score{further}")
        ax.set_title(self.title, loc="left", fontsize="medium")
        ax.margins(x=0.16)
        beside = ax.secondary_yaxis("right")
        beside.set_yticks(places, self.reasons, fontsize="small")
        beside.tick_params(length=0)
        beside.spines["right"].set_visible(False)
        for place, value in zip(places, self.contributions, strict=True):
            ax.annotate(
                number_text(float(value), 3),
                (value, place),
                xytext=(4 if value >= 0.0 else -4, 0),
                textcoords="offset points",
                ha="left" if value >= 0.0 else "right",
                va="center",
                fontsize="small",
            )
        ax.grid(axis="x", color=QUIET, alpha=0.4, linewidth=0.6)
        ax.set_axisbelow(True)
        bare(ax)
        ax.spines["left"].set_visible(False)
        return self
