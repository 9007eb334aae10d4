"""The cells of one column: encoded, with those that cannot be read set aside, and as a person reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.bad_cells import BadCells, UnreadableCells
from ptad.tables.column_types import Column
from ptad.tables.datetime_column import DatetimeColumn
from ptad.tables.moments import moment_array
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.values import decoded, is_text, numbers


def read_column(column: Column, array: pa.Array, offset: int, bad: BadCells) -> tuple[np.ndarray, pa.Array]:
    """The features of one column that begins at row ``offset``, and its cells; those that cannot be read go to ``bad``.

    They are NaN among the features and null among the cells.
    """
    while True:  # a reader may look at its cells in several ways, one after the other
        try:
            return column.raw(array), array
        except UnreadableCells as error:
            bad.add(error, offset)
            array = error.without()


def shown_values(column: Column, array: pa.Array) -> list[Any]:
    """Cells as a person reads them: text in the format of its column as the number or date that it means.

    None where a cell is missing or cannot be read.
    """
    values = decoded(array)
    if (is_text(values.type) or column.type == "boolean") and isinstance(column, NumericColumn | DatetimeColumn):
        values = array = read_column(column, values, 0, BadCells())[1]
    if isinstance(column, DatetimeColumn) and column.formats:
        found = moment_array(values, column.name, zoned=column.zoned, formats=column.formats)
        if column.type == "date" and pa.types.is_timestamp(found.type):
            found = found.cast(pa.date32(), safe=False)
        return _pylist(found)
    if isinstance(column, NumericColumn) and column.type == "numeric" and is_text(values.type):
        found = numbers(values, column.name, form=column.form)
        if not column.integer or not (np.isnan(found) | (np.isfinite(found) & (np.rint(found) == found))).all():
            return _pylist(pa.array(found, from_pandas=True))
        digits = column.form.plain(pc.utf8_trim_whitespace(values)).to_pylist()
        return [None if text is None or text.lower() == "nan" else _whole(text) for text in digits]
    return _pylist(array)


def _whole(text: str) -> int:
    """A whole number without a loss of digits, where it is written as one."""
    return int(text) if text.lstrip("+-").isdecimal() else int(float(text))


def _pylist(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        zone = "UTC" if pa.types.is_timestamp(array.type) and array.type.tz else None  # as decode shows them
        make = pa.timestamp("us", zone) if pa.types.is_timestamp(array.type) else pa.duration("us")
        try:  # nanoseconds would come back as objects of another library
            return list(array.cast(make, safe=False).to_pylist())
        except (ValueError, OverflowError, pa.ArrowException):  # no Python date reaches beyond year 9999
            return list(array.cast(pa.int64()).to_pylist())
    return list(array.to_pylist())
