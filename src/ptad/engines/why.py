"""The strongest columns of rows: which cells make a row strange, and what was expected there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.scoring import Explanation

_WHOLE = 2.0**53  # beyond it, a float is whole because it cannot be otherwise


def strongest_places(explanation: Explanation, n: int) -> NDArray[np.int64]:
    """Return for every row the places of the ``n`` columns that add most to its score, (n_rows, n)."""
    return np.argsort(-explanation.contribution_values, axis=1, kind="stable")[:, :n]


def why_columns(explanation: Explanation, n: int) -> dict[str, pa.Array]:
    """Return for k = 1..n the columns ``why_k``, ``why_k_expected`` (text) and ``why_k_contribution``.

    A table with fewer than ``n`` columns leaves the last ones empty.
    """
    places = strongest_places(explanation, n)
    n_rows = len(explanation.score)
    names = np.array(explanation.names, dtype=object)
    texts = {int(j): as_text(explanation.expected.column(explanation.names[j])) for j in np.unique(places)}
    found: dict[str, pa.Array] = {}
    for k in range(n):
        if k >= places.shape[1]:
            which: Any = [None] * n_rows
            expected: Any = which
            adds: Any = which
        else:
            place = places[:, k]
            which = names[place]
            expected = np.empty(n_rows, dtype=object)
            for j in np.unique(place):
                rows = place == j
                expected[rows] = texts[int(j)][rows]
            adds = np.take_along_axis(explanation.contribution_values, place[:, None], axis=1)[:, 0]
            # rounded as the scores are: what remains does not depend on the order in which a machine adds
            adds = adds.astype(np.float32).astype(np.float64)
        found[f"why_{k + 1}"] = pa.array(which, pa.string())
        found[f"why_{k + 1}_expected"] = pa.array(expected, pa.string())
        found[f"why_{k + 1}_contribution"] = pa.array(adds, pa.float64())
    return found


def row_reasons(explanation: Explanation, n: int) -> list[list[dict[str, Any]]]:
    """Return per row its ``n`` strongest columns as plain values: column, observed, expected, contribution, share.

    Meant for a few rows that a person reads.
    """
    observed, expected = explanation.observed.to_pydict(), explanation.expected.to_pydict()
    reasons = []
    for row, places in enumerate(strongest_places(explanation, n)):
        total = explanation.score[row] or 1.0
        reasons.append(
            [
                {
                    "column": explanation.names[j],
                    "observed": observed[explanation.names[j]][row],
                    "expected": expected[explanation.names[j]][row],
                    "contribution": float(explanation.contribution_values[row, j]),
                    "share": float(explanation.contribution_values[row, j] / total),
                }
                for j in places
            ]
        )
    return reasons


def as_text(column: pa.Array | pa.ChunkedArray) -> NDArray[np.object_]:
    """Return the cells of a column as text, floats with six digits; None where missing."""
    if pa.types.is_floating(column.type):
        values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
        whole = (np.rint(values) == values) & (np.abs(values) < _WHOLE)
        text = np.char.mod("%.6g", values).astype(object)
        text[whole] = np.char.mod("%d", values[whole]).astype(object)
        text[np.isnan(values)] = None
        return np.asarray(text)
    try:
        return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
    except pa.ArrowException:  # durations and integers beyond 64 bits have no cast to text
        return np.array([None if v is None else str(v) for v in column.to_pylist()], dtype=object)
