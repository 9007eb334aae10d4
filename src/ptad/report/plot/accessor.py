"""The figures as methods of the model that people hold: ``detector.plot.scores(rows)``."""

from __future__ import annotations

from typing import Any

from ptad.report.plot.canvas import MOST_NAMES
from ptad.report.plot.cells import CellHeatmapDisplay
from ptad.report.plot.history import HistoryDisplay
from ptad.report.plot.masks import MaskDisplay
from ptad.report.plot.projection import ProjectionDisplay
from ptad.report.plot.prototypes import PrototypeDisplay
from ptad.report.plot.scores import ScoreHistogramDisplay
from ptad.table_model import TableModel


class Plots:
    """Figures of a model; every method draws with matplotlib and returns the axes.

    Parameters
    ----------
    model : TableModel
        A fitted :class:`ptad.PTAD`, or a :class:`ptad.Model`.
    """

    def __init__(self, model: TableModel) -> None:
        self._model: Any = model

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
        return ScoreHistogramDisplay.from_estimator(self._model, X, labels, ax=ax).ax_

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
        return CellHeatmapDisplay.from_estimator(self._model, X, top=top, n_columns=n_columns, ax=ax).ax_

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
        return HistoryDisplay.from_estimator(self._model, ax=ax).ax_

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
        return MaskDisplay.from_estimator(self._model, X, normal=normal, anomaly=anomaly, ax=ax).ax_

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
        return PrototypeDisplay.from_estimator(self._model, ax=ax).ax_

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
        return ProjectionDisplay.from_estimator(self._model, X, labels, ax=ax).ax_
