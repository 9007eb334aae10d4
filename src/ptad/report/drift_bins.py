"""What the bins of a column are called."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.report.numbers import different_texts, value_text, whole_text
from ptad.tables.categorical_column import CategoricalColumn

MOST_LABELS = 12
_LENGTH = 40


def bin_labels(column: Any, edges: NDArray[np.float64], order: NDArray[np.int64], n_bins: int) -> list[str]:
    """Return a name for every bin that is shown, and one for all others where some are not.

    Parameters
    ----------
    column : Column
        The column of the schema.
    edges : ndarray
        Upper ends of all bins but the last, in the units of the encoding; empty for a category.
    order : ndarray
        The bins that are shown.
    n_bins : int
        The number of all bins.
    """
    if isinstance(column, CategoricalColumn):
        values = [_cut(value) for value in column.values] + ["unseen category"]
        names = [values[i] for i in order]
        return names if len(order) == n_bins else [*names, "all others"]
    if column.type == "boolean":
        return ["false", "true"]
    if column.type == "text":
        return ["known", "new"] if n_bins == 2 else [f"length group {i + 1} of {n_bins}" for i in range(n_bins)]
    return _ranges(column, edges)


def _ranges(column: Any, edges: NDArray[np.float64]) -> list[str]:
    raw = np.zeros((len(edges), len(column.labels)))
    raw[:, 0] = edges
    raw[0, 0] = np.nextafter(edges[0], np.inf)  # the lowest edge lies a hair below the smallest value: back to it
    values = column.decode(raw).tolist()
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return _whole_ranges(values)
    if isinstance(values[0], float):
        known = sorted(set(values))
        names = dict(zip(known, different_texts(known), strict=True))
        texts = [names[value] for value in values]
    else:
        texts = [_cut(value) for value in values]
    inner = [a if a == b else f"{a} to {b}" for a, b in pairwise(texts)]
    return [f"below {texts[0]}", *inner, f"above {texts[-1]}"]


def _whole_ranges(ends: list[int]) -> list[str]:
    """Whole numbers: a bin begins after the end of the one before, and one that holds a single number is just it."""
    starts = [ends[0], *(end + 1 for end in ends[1:])]
    inner = [
        whole_text(b) if a >= b else f"{whole_text(a)} to {whole_text(b)}"
        for a, b in zip(starts, ends[1:], strict=False)
    ]
    return [f"below {whole_text(ends[0])}", *inner, f"above {whole_text(ends[-1])}"]


def _cut(value: Any) -> str:
    return str(value_text(value, length=_LENGTH))
