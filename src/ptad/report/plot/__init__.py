"""Figures of a fitted detector: ``detector.plot.scores(rows)``, ``explanation.plot(row)``.

Behind them are classes in scikit-learn's style: ``Display.from_estimator`` draws, ``plot(ax=...)`` redraws.

matplotlib is only needed when a figure is drawn: ``pip install 'ptad[plot]'``.
"""

from ptad.report.plot.accessor import Plots
from ptad.report.plot.cells import CellHeatmapDisplay
from ptad.report.plot.contributions import ContributionDisplay
from ptad.report.plot.history import HistoryDisplay
from ptad.report.plot.masks import MaskDisplay
from ptad.report.plot.projection import ProjectionDisplay
from ptad.report.plot.prototypes import PrototypeDisplay
from ptad.report.plot.scores import ScoreHistogramDisplay

__all__ = [
    "Plots",
    "CellHeatmapDisplay",
    "ContributionDisplay",
    "HistoryDisplay",
    "MaskDisplay",
    "ProjectionDisplay",
    "PrototypeDisplay",
    "ScoreHistogramDisplay",
]
