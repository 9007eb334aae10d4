"""What the masks of a normal and of a strange row look like: the paper's two mask figures in one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.report.plot.canvas import NORMAL, QUIET, STRANGE, bare, grid_of_axes, name_ticks
from ptad.scoring import Explanation


class MaskDisplay:
    """P-space masking rates (top) and soft data-space masks (bottom) of a normal and a strange row, side by side.

    Parameters
    ----------
    masking_rate, data_mask : ndarray of shape (2, n_columns)
        First the normal row, then the strange one.
    columns : sequence of str
        Names of the columns.
    rows : sequence of str
        Names of the two rows.

    Attributes
    ----------
    figure_, ax_
        The figure and the (2, 2) array of axes, after ``plot``.
    """

    def __init__(self, *, masking_rate: Any, data_mask: Any, columns: Any, rows: Any = ("normal", "anomalous")) -> None:
        self.masking_rate = np.asarray(masking_rate, dtype=np.float64)
        self.data_mask = np.asarray(data_mask, dtype=np.float64)
        self.columns, self.rows = [str(c) for c in columns], [str(r) for r in rows]

    @classmethod
    def from_estimator(
        cls, estimator: PTAD, X: Any, *, normal: int | None = None, strange: int | None = None, ax: Any = None
    ) -> Self:
        """Draw row ``normal`` beside row ``strange`` of X.

        Without numbers it takes the strangest row, and the ordinary row (score below the median) whose average masking
        rate is nearest to its own, as the paper does.
        """
        explanation = estimator.explain(X)
        rates, masks = _matrix(explanation, "masking_rate"), _matrix(explanation, "data_mask")
        if len(rates) < 2:
            raise DataError(f"X has {len(rates)} row; two are needed to compare a normal row with a strange one.")
        if strange is None:
            strange = int(np.argmax(explanation.score))
        if normal is None:
            away = np.abs(rates.mean(axis=1) - rates[strange].mean())
            away[explanation.score > np.median(explanation.score)] = np.inf
            away[strange] = np.inf
            normal = int(np.argmin(away))
        for number in (normal, strange):
            if not -len(rates) <= number < len(rates):
                raise DataError(f"There is no row {number}: X has {len(rates)} rows, counted from 0.")
        pair = [normal, strange]
        names = [f"normal row {normal}", f"anomalous row {strange}"]
        return cls(masking_rate=rates[pair], data_mask=masks[pair], columns=explanation.names, rows=names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on a (2, 2) array of axes or on a new figure."""
        n_columns = len(self.columns)
        width = min(max(7.0, 2.0 + 0.32 * n_columns), 16.0)
        self.figure_, self.ax_ = grid_of_axes(ax, (2, 2), (width, 5.6), sharex=True, sharey="row")
        places = np.arange(n_columns)
        for side, colour in enumerate((NORMAL, STRANGE)):
            rate, soft = self.ax_[0, side], self.ax_[1, side]
            rate.bar(places, self.masking_rate[side], color=colour, width=0.8)
            mean = float(self.masking_rate[side].mean())
            rate.axhline(mean, color="black", linewidth=0.8, linestyle=":")
            rate.set_title(f"{self.rows[side]}: {mean:.0%} of its latent is masked", fontsize="medium")
            soft.bar(places, self.data_mask[side], color=colour, width=0.8, alpha=0.75)
            name_ticks(soft.xaxis, self.columns, rotation=90, fontsize="x-small")
            soft.set_xlim(-0.6, n_columns - 0.4)
            for drawn in (rate, soft):
                drawn.grid(axis="y", color=QUIET, alpha=0.4, linewidth=0.6)
                drawn.set_axisbelow(True)
                bare(drawn)
        self.ax_[0, 0].set_ylabel("P-space masking rate")
        self.ax_[1, 0].set_ylabel("soft mask")
        self.ax_[1, 0].set_ylim(0.0, 1.0)
        return self


def _matrix(explanation: Explanation, name: str) -> np.ndarray:
    table = getattr(explanation, name)
    return np.column_stack([np.asarray(table[column], dtype=np.float64) for column in explanation.names])
