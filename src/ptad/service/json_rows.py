"""Rows that come as JSON objects: checked, and encoded together without one row affecting another.

Rows are put into one table only where every cell of a column has the same JSON type. So a column of a batch never takes
a type that a row alone would not have had: the encoding of a row, and its score, are those of the row alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.arrays import Matrix
from ptad.errors import DataError
from ptad.tables import BadCells, Schema
from ptad.tables.bad_cells import BadCell
from ptad.tables.names import did_you_mean
from ptad.tables.places import IN_MEMORY, located

JsonRow = dict[str, Any]
MOST_LISTED = 100  # bad cells, in one answer
_ARROW = {str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), type(None): pa.null()}
_FORM = 'Send {"rows": [{"column": value, ...}, ...]}.'


def parse_rows(body: bytes, most_rows: int, most_columns: int) -> list[JsonRow]:
    """Read ``{"rows": [...]}``; other members of the object are ignored."""
    content = _parse_json(body)
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


def _refuse_constant(name: str) -> Any:
    raise _NotANumber(f"{name} is not a JSON number, send null for a missing one")


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(str(body, "utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except RecursionError:
        reason = "it is nested too deeply"
    except (_NotANumber, json.JSONDecodeError) as error:
        reason = str(error)
    except ValueError:
        reason = "a number is too long"
    raise DataError(f"The body is not JSON: {reason}. {_FORM}")


def replace_markers(rows: list[JsonRow], markers: Sequence[str]) -> list[JsonRow]:
    """Return the rows with null for text that means missing."""
    words = {marker.strip() for marker in markers}
    if not words:
        return rows
    return [{n: None if isinstance(v, str) and v.strip() in words else v for n, v in row.items()} for row in rows]


def bad_cell_fields(number: int, first: Sequence[BadCell]) -> dict[str, Any]:
    """Return the fields of an answer that tell how many cells could not be read, and the first of them."""
    cells = [{"row": c.row, "column": c.column, "reason": c.reason} for c in first]
    return {"bad_cells": number, "bad_cell_list": cells}


def required_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns that a row must have."""
    return schema.inputs if schema.from_array else schema.names


def ignored_columns(schema: Schema, rows: Sequence[JsonRow]) -> list[str]:
    """Return the columns of the rows that the model did not see in training."""
    return sorted(set().union(*rows) - set(schema.inputs))[:100]


def encode_rows(schema: Schema, rows: Sequence[JsonRow], bad: BadCells) -> Matrix:
    """Encode rows; errors and bad cells have the position of their row in ``rows``."""
    x = np.empty((len(rows), len(schema.features)))
    for positions, table in tables_by_type(schema, rows):
        bad_here = BadCells(strict=bad.strict)
        with row_positions(positions):
            x[positions] = schema.encode(table, bad_here)
        bad.add_all(bad_here, np.array(positions))
    return x


def tables_by_type(schema: Schema, rows: Sequence[JsonRow]) -> list[tuple[list[int], pa.Table]]:
    """Put rows whose cells have the same JSON types into a table each: (positions of the rows, table)."""
    names = required_columns(schema)
    groups: dict[tuple[type, ...], tuple[list[int], list[list[Any]]]] = {}
    for i, row in enumerate(rows):
        try:
            cells = [row[name] for name in names]
        except KeyError as error:
            raise DataError(
                f"Row {i} (counted from 0) has no column {error.args[0]!r}, which the model was trained with."
                f"{did_you_mean([error.args[0]], list(row))} Add it; null stands for a missing value."
            ) from error
        positions, cells_of_rows = groups.setdefault(tuple(map(type, cells)), ([], []))
        positions.append(i)
        cells_of_rows.append(cells)
    return [(positions, _table(names, types, positions, cells)) for types, (positions, cells) in groups.items()]


def _table(names: Sequence[str], types: tuple[type, ...], positions: list[int], cells: list[list[Any]]) -> pa.Table:
    columns = []
    for name, kind, values in zip(names, types, zip(*cells, strict=True), strict=True):
        if kind not in _ARROW:
            raise DataError(
                f"Row {positions[0]} (counted from 0), column {name!r}: a cell is text, a number, true, false or null, "
                f"not {'a list' if kind is list else 'an object'}."
            )
        try:
            columns.append(pa.array(values, _ARROW[kind]))
        except (pa.ArrowException, OverflowError):
            # integers beyond 64 bits; as text, every type of column reads them in its own way
            columns.append(pa.array([str(v) for v in values], pa.large_string()))
        except UnicodeEncodeError as error:
            raise DataError(f"Column {name!r}: a text is not valid Unicode. Correct it.") from error
    return pa.Table.from_arrays(columns, names=list(names))


@contextmanager
def row_positions(positions: Sequence[int]) -> Iterator[None]:
    """Let errors inside name a row by its position in the call, not in the table that is being encoded."""
    try:
        with located(IN_MEMORY.picked(positions)):
            yield
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise DataError(f"A row cannot be read: {error}. Correct it.") from error
