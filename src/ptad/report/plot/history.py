"""How the training went."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.errors import SettingError
from ptad.report.plot.canvas import ANOMALY, INK, QUIET, bare, one_axes
from ptad.table_model import TableModel

# of Okabe and Ito: colour-blind readers tell them apart
_COLOURS = {"reconstruction": "#0072b2", "basis": "#009e73", "prototype": "#e69f00", "orthogonality": "#cc79a7"}


class HistoryDisplay:
    """Training losses over the steps: the total, its parts, and the held-out loss where one was watched.

    Only terms that are trained have a history: those of the ``paper`` preset.

    Parameters
    ----------
    history : list of dict
        ``PTAD.history_``.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes, after ``plot``.
    """

    def __init__(self, *, history: list[dict[str, float]]) -> None:
        self.history = list(history)

    @classmethod
    def from_estimator(cls, estimator: TableModel, *, ax: Any = None) -> Self:
        """Draw the history of a fitted detector."""
        estimator._check_fitted()
        return cls(history=estimator.history_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` or on a new figure."""
        if not self.history:
            raise SettingError("There is no history to draw: nothing was trained. Fit with PTAD(preset='paper').")
        self.figure_, self.ax_ = one_axes(ax, (7.0, 3.8))
        ax = self.ax_
        steps = [entry["step"] for entry in self.history]

        def line(key: str, label: str, **style: Any) -> None:
            values = np.array([entry.get(key, np.nan) for entry in self.history], dtype=np.float64)
            values[values <= 0] = np.nan  # a part that is switched off is 0, which a logarithm cannot show
            if not np.isnan(values).all():
                ax.plot(steps, values, label=label, **style)

        for part, colour in _COLOURS.items():
            line(part, part, color=colour, linewidth=1.1, alpha=0.9)
        line("total", "total", color=INK, linewidth=2.0)
        line("held_out", "held-out rows", color=ANOMALY, linewidth=1.6, linestyle="--")
        ax.set_yscale("log")
        ax.set(xlabel="training step", ylabel="loss (log scale)")
        ax.grid(color=QUIET, alpha=0.4, linewidth=0.6)
        bare(ax)
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self
