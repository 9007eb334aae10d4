"""Fitting a schema to training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import DataError, SettingError
from ptad.tables.bad_cells import BadCells, quoted_value
from ptad.tables.column_types import Column, Reading, reason_to_exclude
from ptad.tables.conversion import as_frame, as_table
from ptad.tables.delimited import DELIMITER
from ptad.tables.encoding import encode_columns, read_cells
from ptad.tables.exclusion import Exclusion
from ptad.tables.inference import infer_readings
from ptad.tables.names import no_column
from ptad.tables.notes import Note, doubtful_reading
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.schema import Schema
from ptad.tables.values import decoded, is_text, without_missing, without_missing_text


def fit_schema(
    table: Any,
    *,
    types: Mapping[str, str] | None = None,
    missing: Iterable[str] = (),
    drop: Iterable[str] = (),
    only: Iterable[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    bad: BadCells | None = None,
) -> Schema:
    """Fit the encoding of a table to training rows.

    Parameters
    ----------
    table : array, or pandas, polars or Arrow table
        Training rows. The columns of an array are named ``x0, x1, ...``, are numbers, and are all kept.
    types : mapping of column to type, optional
        Overrides the detected type (see :mod:`ptad.tables.column_types`) and keeps a column that looks like an
        identifier or is constant. A date may carry its format: ``{"day": "date:%d/%m/%Y"}``.
    missing : iterable of str
        Text that means "missing", compared after stripping blanks. NaN, None, NA, NaT and nulls always do.
    drop, only : iterable of str
        Columns not to use; the only columns to use.
    decimal, thousands : str, optional
        Signs of numbers in text, such as "," and "." in 1.234,56; by default inferred from the values of all columns.
    bad : BadCells, optional
        Collects the cells that cannot be read, or raises for the first one if it is strict; by default one warning
        names them. They count as missing.

    Returns
    -------
    Schema
        Its ``excluded`` says which columns are not used and why, its ``notes`` how dates and numbers are read.

    Notes
    -----
    Columns of a table (not of an array) that are constant, entirely missing, or text or integers different in each of
    at least 20 rows are excluded. Integers that look like amounts (:func:`ptad.tables.column_types.are_amounts`) stay.
    """
    for parameter, value in (("missing", missing), ("drop", drop), ("only", only)):
        if isinstance(value, str):  # an iterable of letters
            raise SettingError(f"The '{parameter}' parameter must be a list of text: write [{value!r}], not {value!r}.")
        if value is not None and not isinstance(value, Iterable):
            raise SettingError(f"The '{parameter}' parameter must be a list of text. Got {value!r} instead.")
    chosen = dict(types or {})
    dropped, only = tuple(drop), None if only is None else tuple(only)
    table = as_table(table)
    from_array = isinstance(table, np.ndarray)
    frame = as_frame(table, convert=lambda name: name not in dropped and (only is None or name in only))
    names = tuple(frame.schema.names)
    _check_size(len(table), len(names))
    _check_names(names, {"types": tuple(chosen), "drop": dropped, "only": only or ()})
    missing = tuple(missing)
    excluded = {name: Exclusion("dropped") for name in names if name in dropped}
    if only is not None:
        others = [name for name in names if name not in only and name not in dropped]
        excluded |= dict.fromkeys(others, Exclusion("not chosen"))
    cells = {name: without_missing_text(frame.column(name), missing) for name in names if name not in excluded}
    readings, notes = infer_readings(
        {name: array for name, array in cells.items() if not from_array or name in chosen},
        {name: type_ for name, type_ in chosen.items() if name not in excluded},
        decimal,
        thousands,
        semicolons=has_semicolons(table),
    )
    bad_cells = BadCells() if bad is None else bad
    columns: list[Column] = []
    for name, array in cells.items():
        if name in readings:
            fitted = _fit_column(name, readings[name], array, chosen.get(name), bad_cells, notes)
        else:
            fitted = NumericColumn.fit(name, "numeric", array)
        if isinstance(fitted, Exclusion):
            excluded[name] = fitted
        else:
            columns.append(fitted)
    if not columns:
        reasons = "; ".join(f"{name!r} ({reason.phrase()})" for name, reason in list(excluded.items())[:30])
        raise DataError(
            f"No column is left to fit on: {reasons}.", "Add columns that vary, or set their types with {types}."
        )
    # Encoding all cells also checks them. One column at a time fits into memory; its bad cells are known already.
    rate = np.array([np.isnan(encode_columns((c,), frame, missing, BadCells())[:, 0]).mean() for c in columns])
    if bad is None:
        bad_cells.warn()
    return Schema(names, tuple(columns), rate, missing, excluded, from_array, tuple(notes))


def has_semicolons(table: Any) -> bool:
    """Whether a table was read from a file with semicolons as delimiters."""
    metadata = table.schema.metadata if isinstance(table, pa.Table | pa.RecordBatch) else None
    return (metadata or {}).get(DELIMITER) == b";"


def _check_size(n_rows: int, n_columns: int) -> None:
    if not n_columns:  # scikit-learn asks for these words, and for "1 sample"
        shape = f"(shape=({n_rows}, {n_columns}))"
        raise DataError(f"0 feature(s) {shape} while a minimum of 1 is required. The table has no columns.")
    if n_rows < 2:
        rows = "1 row (1 sample)" if n_rows else "0 rows"
        raise DataError(f"The table has {rows}. At least 2 rows are needed to fit a model.")


def _check_names(names: tuple[str, ...], parameters: dict[str, tuple[str, ...]]) -> None:
    for parameter, columns in parameters.items():
        if unknown := [n for n in columns if n not in names]:
            raise DataError(no_column("The table", unknown, names), f"Correct the name in {{{parameter}}}.")


def _fit_column(
    name: str, reading: Reading, cells: pa.Array, chosen: str | None, bad: BadCells, notes: list[Note]
) -> Column | Exclusion:
    """The encoder of a column, or the reason why it is excluded; a doubtful reading is added to ``notes``."""
    cells = without_missing(cells, ())
    array = _with_unreadable_as_null(name, reading, cells, bad)
    if chosen is not None and array.null_count == len(array) > cells.null_count:
        examples = ", ".join(map(quoted_value, decoded(cells).drop_null().unique()[:3].to_pylist()))
        raise DataError(
            f"Column {name!r} cannot be of type {chosen!r}: none of its values ({examples}) can be read that way.",
            "Choose another type or format with {types}.",
        )
    if (note := doubtful_reading(name, reading, cells, array, chosen=chosen is not None)) is not None:
        notes.append(note)
    return reason_to_exclude(array, reading, identifiers=chosen is None) or reading.fit(name, array)


def _with_unreadable_as_null(name: str, reading: Reading, array: pa.Array, bad: BadCells) -> pa.Array:
    if reading.type in ("categorical", "text") or not (
        is_text(decoded(array).type) or reading.type in ("boolean", "date", "datetime")
    ):
        return array

    def read(cells: pa.Array) -> None:
        if cells.null_count < len(cells):
            reading.fit(name, cells).raw(cells)

    return read_cells(read, array, bad)[1]
