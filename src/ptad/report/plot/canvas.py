"""Axes and colours of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptad.arrays import Mask
from ptad.errors import DataError, SettingError, needs_extra

# blue and red that can be distinguished with colour blindness
NORMAL, ANOMALY, QUIET, INK = "#2f6f9f", "#c8452f", "#b8c0c8", "#2b3138"
MOST_NAMES = 40  # legible axis labels


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``; the error without it says how to install it."""
    with needs_extra("plot", "Drawing a figure", "matplotlib"):
        import matplotlib.pyplot as plt
    return plt


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return the axes: those given, or new ones."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def grid_of_axes(ax: Any, shape: tuple[int, int], size: tuple[float, float], **sharing: Any) -> Any:
    """Return an array of axes: those given, whose shape must be right, or new ones."""
    if ax is None:
        return pyplot().subplots(*shape, figsize=size, layout="constrained", squeeze=False, **sharing)[1]
    axes = np.asarray(ax, dtype=object)
    if axes.size != shape[0] * shape[1]:
        raise SettingError(f"'ax' must hold {shape[0]} x {shape[1]} axes. Got {axes.size} instead.")
    return axes.reshape(shape)


def bare(ax: Any, grid: str | None = None) -> None:
    """Remove the upper and right frame lines; draw a ``grid`` along an axis, or both, behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=QUIET, alpha=0.4, linewidth=0.6)
        ax.set_axisbelow(True)


def name_ticks(axis: Any, names: Sequence[str], **text: Any) -> None:
    """Label every position, or every n-th where there are too many to read."""
    step = max(1, -(-len(names) // MOST_NAMES))
    places = range(0, len(names), step)
    axis.set_ticks(list(places), [shortened(names[i]) for i in places], **text)


def shortened(name: str, length: int = 24) -> str:
    """Shorten a long column name, and escape dollar signs, which start a formula in matplotlib."""
    cut = name if len(name) <= length else name[: length - 1] + "…"
    return cut.replace("$", r"\$")


def known_anomalies(labels: Any, n_rows: int) -> Mask:
    """Return labels as booleans; values other than 0, 1, true and false are refused."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise DataError(f"There are {values.size:,} labels for {n_rows:,} rows. Give one per row.")
    values = values.astype(object)
    if not np.isin(values, [0, 1]).all():
        other = next(label for label in values if label not in (0, 1))
        raise DataError(
            f"A label must be 1 or true for an anomaly, 0 or false for a normal row. Got {other!r} instead."
        )
    return values.astype(bool)
