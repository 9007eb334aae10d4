"""Encoding of columns as features, and their cells as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.bad_cells import BadCells, UnreadableCells
from ptad.tables.column_types import Column
from ptad.tables.datetime_column import DAY, FIRST_SECOND, LAST_SECOND, DatetimeColumn, parse_moments
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.places import RowError
from ptad.tables.text_columns import TextColumn
from ptad.tables.values import decoded, is_text, numbers, without_missing_text

if TYPE_CHECKING:
    from ptad.tables.schema import Schema

Result = TypeVar("Result")
FIRST_DAY, LAST_DAY = FIRST_SECOND // DAY, LAST_SECOND // DAY


def read_cells(
    read: Callable[[pa.Array], Result], array: pa.Array, bad: BadCells, offset: int = 0
) -> tuple[Result, pa.Array]:
    """Return ``read(array)`` and the array, both with nulls in place of the cells that cannot be read.

    Those cells are added to ``bad``; the array begins at row ``offset`` of the table.
    """
    while True:  # a reader may check its cells several times, one check after the other
        try:
            return read(array), array
        except UnreadableCells as error:
            bad.add(error, offset)
            array = pc.if_else(pa.array(error.bad), pa.scalar(None, error.array.type), error.array)


def encode_columns(
    columns: tuple[Column, ...], frame: pa.RecordBatch, missing: tuple[str, ...], bad: BadCells, offset: int = 0
) -> np.ndarray:
    """Features of these columns, unscaled float64 of shape (n_rows, n_features); infinite numbers are an error.

    Cells that cannot be read are added to ``bad`` and encoded as NaN.
    """
    block = np.empty((frame.num_rows, sum(len(c.labels) for c in columns)))
    for column, features in column_slices(columns):
        cells = without_missing_text(frame.column(column.name), missing)
        block[:, features] = read_cells(column.raw, cells, bad, offset)[0]
    check_finite(columns, block, offset)
    return block


def check_finite(columns: tuple[Column, ...], block: np.ndarray, offset: int = 0) -> None:
    """Raise if a feature of rows that begin at row ``offset`` is infinite."""
    infinite = np.isinf(block)
    if infinite.any():
        row, feature = (int(i) for i in np.argwhere(infinite)[0])
        name = [c.name for c in columns for _ in c.labels][feature]
        raise RowError(
            f"Input X contains infinity or a value too large: column {name!r}, ",
            offset + row,
            ". Replace it by a finite number or by a missing value.",
        )


def column_slices(columns: tuple[Column, ...]) -> Iterator[tuple[Column, slice]]:
    """Every column with the slice of its features."""
    start = 0
    for column in columns:
        stop = start + len(column.labels)
        yield column, slice(start, stop)
        start = stop


def python_values(column: Column, array: pa.Array) -> list[Any]:
    """Cells as Python objects: text of a column of numbers or dates as the number or date that it means.

    None where a cell is missing or cannot be read.
    """
    values = decoded(array)
    if (is_text(values.type) or column.type == "boolean") and isinstance(column, NumericColumn | DatetimeColumn):
        values = array = read_cells(column.raw, values, BadCells())[1]
    if isinstance(column, DatetimeColumn) and column.formats:
        dates = parse_moments(values, column.name, zoned=column.zoned, formats=column.formats)
        if column.type == "date" and pa.types.is_timestamp(dates.type):
            dates = dates.cast(pa.date32(), safe=False)
        return _to_pylist(dates)
    if isinstance(column, NumericColumn) and column.type == "numeric" and is_text(values.type):
        floats = numbers(values, column.name, form=column.form)
        if not column.integer or not (np.isnan(floats) | (np.isfinite(floats) & (np.rint(floats) == floats))).all():
            return _to_pylist(pa.array(floats, from_pandas=True))
        plain = column.form.to_plain(column.form.without_groups(pc.utf8_trim_whitespace(values))).to_pylist()
        return [None if text is None or text.lower() == "nan" else _to_int(text) for text in plain]
    return _to_pylist(array)


def _to_int(text: str) -> int:
    """A number without a fraction; digits are converted exactly, however many."""
    return int(text) if text.lstrip("+-").isdecimal() else int(float(text))


def _to_pylist(array: pa.Array) -> list[Any]:
    if pa.types.is_date(array.type):  # beyond Python's range, the nearest day that it has
        days = array.cast(pa.date32(), safe=False).cast(pa.int32())
        days = pc.min_element_wise(pc.max_element_wise(days, FIRST_DAY, skip_nulls=False), LAST_DAY, skip_nulls=False)
        return list(days.cast(pa.int32()).cast(pa.date32()).to_pylist())
    if not (pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type)):
        return list(array.to_pylist())
    zone = "UTC" if pa.types.is_timestamp(array.type) and array.type.tz else None  # as decoded values
    microseconds = pa.timestamp("us", zone) if pa.types.is_timestamp(array.type) else pa.duration("us")
    try:  # nanoseconds would become objects of pandas
        return list(array.cast(microseconds, safe=False).to_pylist())
    except (ValueError, OverflowError, pa.ArrowException):  # after year 9999
        return list(array.cast(pa.int64()).to_pylist())


@dataclass(frozen=True)
class CountedText:
    """The text columns of a training table, to leave rows out of the counts of their values.

    A row that is held out of a fit must not be counted: it would look more familiar than a new row.
    """

    schema: Schema  # of all rows
    codes: dict[int, np.ndarray]  # index of a text column: the position of the value of each row among the kept values

    def rows(self, encoded: np.ndarray, held_out: np.ndarray) -> np.ndarray:
        """Return all encoded rows as if the schema had been fitted without the rows ``held_out``."""
        recounted = encoded.copy()
        for i, (column, features) in enumerate(column_slices(self.schema.columns)):
            if isinstance(column, TextColumn):
                recounted[:, features] = column.recount(encoded[:, features], self.codes[i], held_out)
        return recounted

    def without(self, encoded: np.ndarray, held_out: np.ndarray) -> Schema:
        """Return the schema as fitted without the rows ``held_out``."""
        columns = list(self.schema.columns)
        for i, (column, features) in enumerate(column_slices(self.schema.columns)):
            if isinstance(column, TextColumn):
                n_present = int((~np.isnan(encoded[held_out, features.start])).sum())
                columns[i] = column.without(self.codes[i][held_out], n_present)
        return replace(self.schema, columns=tuple(columns))
