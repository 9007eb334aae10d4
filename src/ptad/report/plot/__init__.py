"""Figures of a fitted detector, in scikit-learn's style: ``Display.from_estimator`` draws, ``plot(ax=...)`` redraws.

matplotlib is only needed when a figure is drawn: ``pip install 'ptad[plot]'``.
"""

from ptad.report.plot.cells import CellHeatmapDisplay
from ptad.report.plot.history import HistoryDisplay
from ptad.report.plot.masks import MaskDisplay
from ptad.report.plot.projection import ProjectionDisplay
from ptad.report.plot.prototypes import PrototypeDisplay
from ptad.report.plot.scores import ScoreHistogramDisplay

__all__ = [
    "CellHeatmapDisplay",
    "HistoryDisplay",
    "MaskDisplay",
    "ProjectionDisplay",
    "PrototypeDisplay",
    "ScoreHistogramDisplay",
]
