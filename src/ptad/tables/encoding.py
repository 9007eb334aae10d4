"""Columns encoded, with cells that cannot be read set aside, and as a person reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.bad_cells import BadCells, UnreadableCells
from ptad.tables.column_types import Column
from ptad.tables.datetime_column import DatetimeColumn, moment_array
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.places import RowError
from ptad.tables.text_columns import TextColumn
from ptad.tables.values import decoded, is_text, numbers, without_named

if TYPE_CHECKING:
    from ptad.tables.schema import Schema

Result = TypeVar("Result")


def read_cells(
    read: Callable[[pa.Array], Result], array: pa.Array, bad: BadCells, offset: int = 0
) -> tuple[Result, pa.Array]:
    """What ``read`` makes of the cells of a column that begins at row ``offset``, and the cells.

    Those that cannot be read go to ``bad``, and are null among the cells.
    """
    while True:  # a reader may look at its cells in several ways, one after the other
        try:
            return read(array), array
        except UnreadableCells as error:
            bad.add(error, offset)
            array = error.without()


def raw_block(
    columns: tuple[Column, ...], frame: pa.RecordBatch, missing: tuple[str, ...], bad: BadCells, offset: int = 0
) -> np.ndarray:
    """Unscaled features of these columns, float64 of shape (n_rows, n_encoded); infinite numbers are an error.

    Cells that cannot be read go to ``bad`` and come out as NaN.
    """
    places = list(spans(columns))
    block = np.empty((frame.num_rows, places[-1].stop if places else 0))
    for column, span in zip(columns, places, strict=True):
        block[:, span] = read_cells(column.raw, without_named(frame.column(column.name), missing), bad, offset)[0]
    check_finite(columns, block, offset)
    return block


def check_finite(columns: tuple[Column, ...], block: np.ndarray, offset: int = 0) -> None:
    """Raise if a feature of rows that begin at row ``offset`` is infinite."""
    infinite = np.isinf(block)
    if infinite.any():
        row, place = (int(i) for i in np.argwhere(infinite)[0])
        name = [c.name for c in columns for _ in c.labels][place]
        raise RowError(
            f"Input X contains infinity or a value too large: column {name!r}, ",
            offset + row,
            ". Replace it by a finite number or by a missing value.",
        )


def spans(columns: tuple[Column, ...]) -> Iterator[slice]:
    """The features of every column."""
    start = 0
    for column in columns:
        stop = start + len(column.labels)
        yield slice(start, stop)
        start = stop


def shown_values(column: Column, array: pa.Array) -> list[Any]:
    """Cells as a person reads them: text in the format of its column as the number or date that it means.

    None where a cell is missing or cannot be read.
    """
    values = decoded(array)
    if (is_text(values.type) or column.type == "boolean") and isinstance(column, NumericColumn | DatetimeColumn):
        values = array = read_cells(column.raw, values, BadCells())[1]
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


@dataclass(frozen=True)
class CountedText:
    """The text columns of a training table, whose values its own rows have counted.

    A row that is held out of a fit must not have counted itself: it would look more familiar than a new row does.

    Attributes
    ----------
    schema : Schema
        The schema of all rows.
    codes : dict of int to ndarray
        Place of a text column to which remembered value each row has.
    """

    schema: Schema
    codes: dict[int, np.ndarray]

    def rows(self, encoded: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return all encoded rows as a schema fitted without the rows ``held`` encodes them."""
        found = encoded.copy()
        for i, span in enumerate(spans(self.schema.columns)):
            column = self.schema.columns[i]
            if isinstance(column, TextColumn):
                found[:, span] = column.recounted(encoded[:, span], self.codes[i], held)
        return found

    def without(self, encoded: np.ndarray, held: np.ndarray) -> Schema:
        """Return the schema as fitted without the rows ``held``."""
        columns = list(self.schema.columns)
        for i, span in enumerate(spans(self.schema.columns)):
            column = columns[i]
            if isinstance(column, TextColumn):
                present = int((~np.isnan(encoded[held, span.start])).sum())
                columns[i] = column.without(self.codes[i][held], present)
        return replace(self.schema, columns=tuple(columns))
