"""Figures of a fitted detector: ``detector.plot.scores(rows)``, ``explanation.plot(row)``.

matplotlib is only needed when a figure is drawn: ``pip install 'ptad[plot]'``.
"""

from __future__ import annotations

from ptad.model import Model
from ptad.report.plot.network import NetworkPlots
from ptad.report.plot.rows import RowPlots, draw_contributions

__all__ = ["Plots", "draw_contributions"]


class Plots(RowPlots, NetworkPlots):
    """Figures of a model; every method draws with matplotlib and returns the axes.

    Parameters
    ----------
    model : Model
        A fitted :class:`ptad.PTAD`, or a :class:`ptad.Model`.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return (
            "Figures: scores(rows), cells(rows); paper preset: history(), masks(rows), prototypes(), projection(rows)"
        )
