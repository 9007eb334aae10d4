"""The columns that contribute most to the score of a row, with reason and expected value: as columns, or per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptad.arrays import Matrix
from ptad.explanation import Explanation, strongest_places
from ptad.tables.conversion import as_frame

_LARGEST_WHOLE = 2.0**53  # larger floats are whole numbers only because they have no room for decimals


def why_fields(k: int) -> list[tuple[str, pa.DataType]]:
    """Return names and types of the output columns about the k-th strongest column of a row, k = 1, 2, ..."""
    return [
        (f"why_{k}", pa.string()),
        (f"why_{k}_reason", pa.string()),
        (f"why_{k}_expected", pa.string()),
        (f"why_{k}_contribution", pa.float64()),
        (f"why_{k}_percentage", pa.float64()),
    ]


def why_columns(explanation: Explanation, n: int) -> dict[str, pa.Array]:
    """Return for k = 1..n the columns of :func:`why_fields`.

    A percentage is the share of the row's positive contributions; a column without one has no reason. A table with
    fewer than ``n`` columns leaves the last ones empty.
    """
    places = strongest_places(explanation.contribution_values, n)
    n_rows, names = len(explanation.score), explanation.names
    used = np.unique(places).tolist()
    expected = {j: as_text(explanation.expected.column(names[j])) for j in used}
    reasons = {j: np.array(explanation.reasons.column(names[j]).to_pylist(), dtype=object) for j in used}
    percentages = explanation.percentage_values
    columns: dict[str, pa.Array] = {}
    for k in range(1, n + 1):
        values: list[Any] = [[None] * n_rows] * 5
        if k <= places.shape[1]:
            place = places[:, k - 1]
            contribution = _cell_of_each_row(explanation.contribution_values, place)
            values = [
                np.array(names, dtype=object)[place],
                pc.if_else(contribution > 0.0, pa.array(_text_of_each_row(reasons, place), pa.string()), None),
                _text_of_each_row(expected, place),
                contribution,
                _cell_of_each_row(percentages, place),
            ]
        for (name, type_), column in zip(why_fields(k), values, strict=True):
            columns[name] = pa.array(column, type_)
    return columns


def row_reasons(explanation: Explanation, n: int, rows: slice = slice(None)) -> list[list[dict[str, Any]]]:
    """Return per row its ``n`` strongest columns as plain values; of all rows, or of a slice.

    Every entry has ``column``, ``reason``, ``observed``, ``expected``, ``contribution`` and ``percentage``, the share
    of the row's positive contributions; a column without one has no reason. Meant for a few rows that a person reads.
    """
    tables = (explanation.observed, explanation.expected, explanation.reasons)
    observed, expected, reasons = (as_frame(table)[rows].to_pydict() for table in tables)
    contributions, percentages = explanation.contribution_values[rows], explanation.percentage_values[rows]
    return [
        [
            {
                "column": name,
                "reason": reasons[name][row] if contributions[row, j] > 0.0 else None,
                "observed": observed[name][row],
                "expected": expected[name][row],
                "contribution": float(contributions[row, j]),
                "percentage": float(percentages[row, j]),
            }
            for j, name in ((j, explanation.names[j]) for j in places)
        ]
        for row, places in enumerate(strongest_places(contributions, n))
    ]


def as_text(column: pa.Array | pa.ChunkedArray) -> NDArray[np.object_]:
    """Return the cells of a column as text, floats with six digits; None where missing."""
    if pa.types.is_floating(column.type):
        values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
        whole = (np.rint(values) == values) & (np.abs(values) < _LARGEST_WHOLE)
        text = np.char.mod("%.6g", values).astype(object)
        text[whole] = np.char.mod("%d", values[whole]).astype(object)
        text[np.isnan(values)] = None
        return np.asarray(text)
    try:
        return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
    except pa.ArrowException:  # durations and integers beyond 64 bits have no cast to text
        return np.array([None if v is None else str(v) for v in column.to_pylist()], dtype=object)


def _text_of_each_row(columns: dict[int, NDArray[np.object_]], place: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return for every row the cell in the column ``place`` of that row."""
    cells = np.empty(len(place), dtype=object)
    for j in np.unique(place).tolist():
        cells[place == j] = columns[j][place == j]
    return cells


def _cell_of_each_row(values: Matrix, place: NDArray[np.int64]) -> Matrix:
    """Return the same of numbers, in single precision as scores are: the order of additions does not show."""
    return np.take_along_axis(values, place[:, None], axis=1)[:, 0].astype(np.float32).astype(np.float64)
