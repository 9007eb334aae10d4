"""Figures of a fitted detector: ``detector.plot.scores(rows)``, ``explanation.plot(row)``.

matplotlib is only needed when a figure is drawn: ``pip install 'ptad[plot]'``.
"""

from __future__ import annotations

from typing import Any

from ptad.report.plot.canvas import MOST_NAMES
from ptad.report.plot.network import draw_history, draw_masks, draw_projection, draw_prototypes
from ptad.report.plot.rows import draw_cells, draw_contributions, draw_scores
from ptad.table_model import TableModel

__all__ = ["Plots", "draw_contributions"]


class Plots:
    """Figures of a model; every method draws with matplotlib and returns the axes.

    Parameters
    ----------
    model : TableModel
        A fitted :class:`ptad.PTAD`, or a :class:`ptad.Model`.
    """

    def __init__(self, model: TableModel) -> None:
        self._model = model

    def __repr__(self) -> str:
        return (
            "Figures: scores(rows), cells(rows); paper preset: history(), masks(rows), prototypes(), projection(rows)"
        )

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
        return draw_scores(self._model, X, labels, ax)

    def cells(self, X: Any, top: int = 20, *, n_columns: int = MOST_NAMES, ax: Any = None) -> Any:
        """Draw the rows with the highest scores, cell by cell: darker where a cell contributes more.

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
        return draw_cells(self._model, X, top, n_columns, ax)

    def history(self, *, ax: Any = None) -> Any:
        """Draw the training losses of the ``paper`` preset.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        return draw_history(self._model, ax)

    def masks(self, X: Any, normal: int | None = None, anomaly: int | None = None, *, ax: Any = None) -> Any:
        """Draw what the network of the ``paper`` preset masks in a normal row and in an anomaly.

        Parameters
        ----------
        X : table or array
            Rows to choose from.
        normal : int, optional
            The normal row, counted from 0. Without it, one that is masked as much as the anomaly.
        anomaly : int, optional
            The anomalous row, counted from 0. Without it, the one with the highest score.
        ax : array of 2 x 2 matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        array of matplotlib axes
            What was drawn on, 2 x 2.
        """
        return draw_masks(self._model, X, normal, anomaly, ax)

    def prototypes(self, *, ax: Any = None) -> Any:
        """Draw the basis vectors and association prototypes of the ``paper`` preset.

        Parameters
        ----------
        ax : array of matplotlib axes, optional
            Where to draw, one per panel. Without it, a new figure is made.

        Returns
        -------
        array of matplotlib axes
            What was drawn on, one per panel.
        """
        return draw_prototypes(self._model, ax)

    def projection(self, X: Any, labels: Any = None, *, ax: Any = None) -> Any:
        """Draw rows and basis vectors in the main plane of the P-space of the ``paper`` preset.

        Parameters
        ----------
        X : table or array
            Rows to project.
        labels : array of shape (n_rows,), optional
            True or 1 for known anomalies; the points are coloured by them instead of by the threshold.
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        return draw_projection(self._model, X, labels, ax)
