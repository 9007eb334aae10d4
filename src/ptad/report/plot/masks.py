"""What the masks of a normal row and of an anomaly look like: the paper's two mask figures in one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.errors import DataError
from ptad.report.plot.canvas import ANOMALY, NORMAL, QUIET, bare, grid_of_axes, name_ticks, network_of
from ptad.table_model import TableModel


class MaskDisplay:
    """P-space masking rates (top) and soft data-space masks (bottom) of a normal row and an anomaly.

    For models of the ``paper`` preset, whose network has these masks.

    Parameters
    ----------
    masking_rate, data_mask : ndarray of shape (2, n_columns)
        First the normal row, then the anomaly.
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
        cls, estimator: TableModel, X: Any, *, normal: int | None = None, anomaly: int | None = None, ax: Any = None
    ) -> Self:
        """Draw row ``normal`` beside row ``anomaly`` of X.

        Without numbers it takes the row with the highest score, and the ordinary row (score below the median) whose
        average masking rate is nearest to its own, as the paper does.
        """
        term = network_of(estimator, "MaskDisplay")
        rows = estimator.schema_.encode(X)
        cells, scores = term.cells(rows), np.asarray(estimator.anomaly_score(X))
        rates, masks = np.asarray(cells.masking_rate), np.asarray(cells.data_mask)
        if len(rates) < 2:
            raise DataError("There is 1 row. Give at least 2: the figure compares a normal row with an anomaly.")
        if anomaly is None:
            anomaly = int(np.argmax(scores))
        if normal is None:
            away = np.abs(rates.mean(axis=1) - rates[anomaly].mean())
            away[scores > np.median(scores)] = np.inf
            away[anomaly] = np.inf
            normal = int(np.argmin(away))
        for number in (normal, anomaly):
            if not -len(rates) <= number < len(rates):
                raise DataError(f"There is no row {number}: X has {len(rates)} rows, counted from 0.")
        pair = [normal, anomaly]
        names = [f"normal row {normal}", f"anomalous row {anomaly}"]
        return cls(masking_rate=rates[pair], data_mask=masks[pair], columns=estimator.schema_.names, rows=names).plot(
            ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw on a (2, 2) array of axes or on a new figure."""
        n_columns = len(self.columns)
        width = min(max(7.0, 2.0 + 0.32 * n_columns), 16.0)
        self.figure_, self.ax_ = grid_of_axes(ax, (2, 2), (width, 5.6), sharex=True, sharey="row")
        places = np.arange(n_columns)
        for side, colour in enumerate((NORMAL, ANOMALY)):
            rate, soft = self.ax_[0, side], self.ax_[1, side]
            rate.bar(places, self.masking_rate[side], color=colour, width=0.8)
            mean = float(self.masking_rate[side].mean())
            rate.axhline(mean, color="black", linewidth=0.8, linestyle=":")
            rate.set_title(f"{self.rows[side]}\n{100.0 * mean:.0f} % of its latent space is masked", fontsize="medium")
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
