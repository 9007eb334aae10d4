"""The cells of one column: encoded, with those that cannot be read set aside, and as they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ptad.tables.bad_cells import BadCells, UnreadableCells
from ptad.tables.kinds import Column
from ptad.tables.number_column import NumberColumn
from ptad.tables.values import decoded, is_text


def read_column(column: Column, array: pa.Array, offset: int, bad: BadCells) -> tuple[np.ndarray, pa.Array]:
    """The features of one column that begins at row ``offset``, and its cells; those that cannot be read go to ``bad``.

    They are NaN among the features and null among the cells.
    """
    while True:  # a reader may look at its cells in several ways, one after the other
        try:
            return column.raw(array, offset), array
        except UnreadableCells as error:
            bad.add(error)
            array = error.without()


def observed_values(column: Column, array: pa.Array) -> list[Any]:
    """The cells of a column as plain Python objects, None where they are missing or cannot be read."""
    array = decoded(array)
    if not is_text(array.type) and column.kind != "boolean":
        return _pylist(array)
    features, array = read_column(column, array, 0, BadCells())
    if not (isinstance(column, NumberColumn) and column.kind == "number"):
        return _pylist(array)
    # text that holds numbers reads as it would in a column of numbers: one bad cell must not change the others
    numbers = features[:, 0].tolist()
    return [
        None if n != n else int(n) + column.origin if column.integer and n.is_integer() else n + column.origin
        for n in numbers
    ]


def _pylist(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        zone = "UTC" if pa.types.is_timestamp(array.type) and array.type.tz else None  # as decode shows them
        make = pa.timestamp("us", zone) if pa.types.is_timestamp(array.type) else pa.duration("us")
        try:  # nanoseconds would come back as objects of another library
            return list(array.cast(make, safe=False).to_pylist())
        except (ValueError, OverflowError, pa.ArrowException):  # no Python date reaches beyond year 9999
            return list(array.cast(pa.int64()).to_pylist())
    return list(array.to_pylist())
