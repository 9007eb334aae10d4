"""Rows that come as JSON objects: checked, and encoded together without one row touching another.

Rows are put together only where every cell of a column has the same JSON type, so that a column of a batch never takes
a type that a row alone would not have had: the encoding of a row, and its score, are those of the row alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.tables import BadCells, Schema
from ptad.tables.bad_cells import BadCell
from ptad.tables.names import did_you_mean
from ptad.tables.places import IN_MEMORY, located

Row = dict[str, Any]
MOST_LISTED = 100  # cells that cannot be read, in one answer
_ARROW = {str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), type(None): pa.null()}


_FORM = 'Send {"rows": [{"column": value, ...}, ...]}.'


def parse_rows(body: bytes, most_rows: int, most_columns: int) -> list[Row]:
    """Read ``{"rows": [...]}``; what else the object holds is passed over."""
    try:
        content = json.loads(str(body, "utf-8-sig"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _not_json("it is not UTF-8 text") from error
    except _NotANumber as error:
        raise _not_json(f"{error} is not a JSON number, send null for a missing one") from error
    except RecursionError as error:
        raise _not_json("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise _not_json(str(error)) from error
    except ValueError as error:
        raise _not_json("a number is too long") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise DataError(f'The body has no list "rows". {_FORM}')
    if not rows:
        raise DataError('"rows" is empty. Send at least one row.')
    if len(rows) > most_rows:
        raise DataError(
            f'"rows" holds more than {most_rows:,} rows, the limit of one call. Send fewer, or a CSV or Parquet body.'
        )
    names: set[str] = set()
    for i, row in enumerate(rows):
        if type(row) is not dict:
            raise DataError(f"Row {i} (counted from 0) is not an object of column names and values.")
        names.update(row)
        if len(names) > most_columns:
            raise DataError(
                f"Row {i} (counted from 0): the rows have more than {most_columns:,} different columns, the limit of "
                "this service. Send fewer."
            )
    return rows


class _NotANumber(ValueError):
    pass


def _no_constant(name: str) -> Any:
    raise _NotANumber(name)


def _not_json(what: str) -> DataError:
    return DataError(f"The body is not JSON: {what}. {_FORM}")


def without_markers(rows: list[Row], markers: Sequence[str]) -> list[Row]:
    """Rows in which text that means missing is null."""
    words = {marker.strip() for marker in markers}
    if not words:
        return rows
    return [{n: None if isinstance(v, str) and v.strip() in words else v for n, v in row.items()} for row in rows]


def said_of(number: int, first: Sequence[BadCell]) -> dict[str, Any]:
    """What an answer says of cells that cannot be read: how many, and the first of them."""
    shown = [{"row": c.row, "column": c.column, "reason": c.reason} for c in first]
    return {"bad_cells": number, "bad_cell_list": shown}


def wanted_columns(schema: Schema) -> tuple[str, ...]:
    """The columns that a row must have."""
    return schema.inputs if schema.from_array else schema.names


def ignored_columns(schema: Schema, rows: Sequence[Row]) -> list[str]:
    """Columns of the rows that the model did not see in training."""
    known = set(schema.inputs)
    return sorted(set().union(*rows) - known)[:100]


def encode_rows(schema: Schema, rows: Sequence[Row], bad: BadCells) -> NDArray[np.float64]:
    """Encode rows; an error, and a cell that cannot be read, is known by its place in ``rows``."""
    x = np.empty((len(rows), len(schema.features)))
    for places, table in typed_tables(schema, rows):
        own = BadCells(strict=bad.strict)
        with placed(places):
            x[places] = schema.encode(table, own)
        bad.add_all(own, np.array(places))
    return x


def typed_tables(schema: Schema, rows: Sequence[Row]) -> list[tuple[list[int], pa.Table]]:
    """Put rows whose cells have the same JSON types together: (places of the rows, table)."""
    names = wanted_columns(schema)
    groups: dict[tuple[type, ...], tuple[list[int], list[list[Any]]]] = {}
    for i, row in enumerate(rows):
        try:
            cells = [row[name] for name in names]
        except KeyError as error:
            raise DataError(
                f"Row {i} (counted from 0) has no column {error.args[0]!r}, which the model was trained with."
                f"{did_you_mean([error.args[0]], list(row))} Add it; null stands for a missing value."
            ) from error
        places, held = groups.setdefault(tuple(map(type, cells)), ([], []))
        places.append(i)
        held.append(cells)
    return [(places, _table(names, types, places, held)) for types, (places, held) in groups.items()]


def _table(names: Sequence[str], types: tuple[type, ...], places: list[int], cells: list[list[Any]]) -> pa.Table:
    columns = []
    for name, kind, values in zip(names, types, zip(*cells, strict=True), strict=True):
        arrow = _ARROW.get(kind)
        if arrow is None:
            raise DataError(
                f"Row {places[0]} (counted from 0), column {name!r}: a cell is text, a number, true, false or null, "
                f"not {'a list' if kind is list else 'an object'}."
            )
        try:
            columns.append(pa.array(values, arrow))
        except (pa.ArrowException, OverflowError):
            # whole numbers beyond 64 bits; as text, every type of column reads them in its own way
            columns.append(pa.array([str(v) for v in values], pa.large_string()))
        except UnicodeEncodeError as error:
            raise DataError(f"Column {name!r}: a text is not valid Unicode. Correct it.") from error
    return pa.Table.from_arrays(columns, names=list(names))


@contextmanager
def placed(rows: Sequence[int]) -> Iterator[None]:
    """Errors inside name a row by its place in the whole, not in the part that was being encoded."""
    try:
        with located(IN_MEMORY.picked(rows)):
            yield
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise DataError(f"A row cannot be read: {error}. Correct it.") from error
