"""The rows with the highest scores, cell by cell."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.report.plot.canvas import MOST_NAMES, heat, name_ticks, one_axes, pyplot
from ptad.table_model import TableModel


class CellHeatmapDisplay:
    """Heat map of the rows with the highest scores: red where a cell contributes to the score.

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_columns)
        What each cell adds to the score of its row.
    columns, rows : sequence of str
        Names of the columns and of the rows.
    full : float, optional
        A contribution of this size is fully red. Without it, the largest one is.

    Attributes
    ----------
    figure_, ax_, image_
        The figure, the axes and the image, after ``plot``.
    """

    def __init__(self, *, contributions: Any, columns: Any, rows: Any, full: float | None = None) -> None:
        self.contributions = np.asarray(contributions, dtype=np.float64)
        self.columns, self.rows = [str(c) for c in columns], [str(r) for r in rows]
        self.full = full

    @classmethod
    def from_estimator(
        cls, estimator: TableModel, X: Any, *, top: int = 20, n_columns: int = MOST_NAMES, ax: Any = None
    ) -> Self:
        """Draw the ``top`` rows; of a wide table the ``n_columns`` columns that contribute most to them.

        Fully red is a cell that makes up half of the way from a typical normal row to the threshold.
        """
        explanation = estimator.explain(X)
        order = np.argsort(-explanation.score_values, kind="stable")[:top]
        cells = explanation.contribution_values[order]
        kept = np.sort(np.argsort(-cells.sum(axis=0), kind="stable")[:n_columns])
        return cls(
            contributions=cells[:, kept],
            columns=[explanation.names[j] for j in kept],
            rows=order,
            full=_half_way(estimator),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` or on a new figure."""
        n_rows, n_columns = self.contributions.shape
        size = (min(3.0 + 0.26 * n_columns, 14.0), min(2.4 + 0.2 * n_rows, 12.0))
        self.figure_, self.ax_ = one_axes(ax, size)
        ax = self.ax_
        shades = pyplot().get_cmap("Reds")
        self.image_ = ax.imshow(heat(self.contributions, self.full), aspect="auto", cmap=shades, vmin=0.0, vmax=1.0)
        name_ticks(ax.xaxis, self.columns, rotation=90, fontsize="small")
        name_ticks(ax.yaxis, self.rows, fontsize="small")
        ax.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=0.8)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("row, the highest score first")
        bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.6, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_ticks(
            [0.0, 1.0], labels=["none", "largest" if self.full is None else "half-way to\nthe threshold\nor more"]
        )
        return self


def _half_way(estimator: TableModel) -> float | None:
    calibration = estimator.detector_.calibration
    return None if calibration is None else -float(estimator.offset_ + np.median(calibration.scores)) / 2.0
