"""Learning a schema from training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import DataError, Option, SettingError
from ptad.tables.bad_cells import BadCells, shown_value
from ptad.tables.column_types import Column, Reading, reason_to_exclude
from ptad.tables.conversion import as_frame, as_table
from ptad.tables.delimited import DELIMITER
from ptad.tables.encoding import raw_block, read_cells
from ptad.tables.inference import read_columns
from ptad.tables.names import no_column
from ptad.tables.notes import Note, doubt_of
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.schema import Schema
from ptad.tables.values import decoded, is_text, without_missing, without_named


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
    """Find out from training rows how to encode a table.

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
        Signs in numbers that are written as text, such as "," and "." in 1.234,56; found from the values of all columns
        where they are not given.
    bad : BadCells, optional
        Collects the cells that cannot be read, or refuses the first one if it is strict; without it they are named in
        one warning. They count as missing.

    Returns
    -------
    Schema
        Its ``excluded`` says which columns are not used and why, its ``notes`` how dates and numbers are read.

    Notes
    -----
    Columns of a table (not of an array) that are constant, entirely missing, or text or integers different in each of
    at least 20 rows are excluded. Integers that look like amounts (:func:`ptad.tables.column_types.are_amounts`) stay.
    """
    for parameter, given in (("missing", missing), ("drop", drop), ("only", only)):
        if isinstance(given, str):  # it would be taken apart into its letters
            raise SettingError(f"The '{parameter}' parameter must be a list of text: write [{given!r}], not {given!r}.")
        if given is not None and not isinstance(given, Iterable):
            raise SettingError(f"The '{parameter}' parameter must be a list of text. Got {given!r} instead.")
    chosen = dict(types or {})
    dropped, only = tuple(drop), None if only is None else tuple(only)
    table = as_table(table)
    from_array = isinstance(table, np.ndarray)
    frame = as_frame(table, wanted=lambda name: name not in dropped and (only is None or name in only))
    names = tuple(frame.schema.names)
    _check_size(len(table), len(names))
    _check_names(names, {"types": tuple(chosen), "drop": dropped, "only": only or ()})
    texts = tuple(missing)
    excluded = {
        name: "dropped by the user" if name in dropped else "not among the columns chosen by the user"
        for name in names
        if name in dropped or (only is not None and name not in only)
    }
    cells = {name: without_named(frame.column(name), texts) for name in names if name not in excluded}
    readings, notes = read_columns(
        {name: array for name, array in cells.items() if not from_array or name in chosen},
        {name: type_ for name, type_ in chosen.items() if name not in excluded},
        decimal,
        thousands,
        semicolons=has_semicolons(table),
    )
    found = BadCells() if bad is None else bad
    columns: list[Column] = []
    for name, array in cells.items():
        if name in readings:
            fitted = _fitted(name, readings[name], array, chosen.get(name), found, notes)
        else:
            fitted = NumericColumn.fit(name, "numeric", array)
        if isinstance(fitted, str):
            excluded[name] = fitted
        else:
            columns.append(fitted)
    if not columns:
        reasons = "; ".join(f"{name!r} ({reason})" for name, reason in list(excluded.items())[:30])
        raise DataError(
            f"No column is left to fit on: {reasons}.",
            "Add columns that vary, or set their types with {}.",
            (Option("types"),),
        )
    # column by column: one of them fits into memory; this checks all cells, and the bad ones are known already
    rate = np.array([np.isnan(raw_block((c,), frame, texts, BadCells())[:, 0]).mean() for c in columns])
    if bad is None:
        found.warn()
    return Schema(names, tuple(columns), rate, texts, excluded, from_array, tuple(notes))


def has_semicolons(table: Any) -> bool:
    """Whether a table comes from a file whose cells semicolons separate."""
    metadata = table.schema.metadata if isinstance(table, pa.Table | pa.RecordBatch) else None
    return (metadata or {}).get(DELIMITER) == b";"


def _check_size(n_rows: int, n_columns: int) -> None:
    shape = f"(shape=({n_rows}, {n_columns}))"
    if not n_columns:
        raise DataError(f"0 feature(s) {shape} while a minimum of 1 is required. The table has no columns.")
    if n_rows < 2:
        found = f"0 rows {shape}" if n_rows == 0 else f"1 row (1 sample, {shape})"
        raise DataError(f"The table has {found}. At least 2 rows are needed to fit a model.")


def _check_names(names: tuple[str, ...], given: dict[str, tuple[str, ...]]) -> None:
    for parameter, wanted in given.items():
        absent = [n for n in wanted if n not in names]
        if absent:
            raise DataError(no_column("The table", absent, names), "Correct the name in {}.", (Option(parameter),))


def _fitted(
    name: str, reading: Reading, cells: pa.Array, chosen: str | None, bad: BadCells, notes: list[Note]
) -> Column | str:
    """The encoder of a column, or the reason why it is excluded; what is questionable goes to ``notes``."""
    whole = without_missing(cells, ())
    array = _readable(name, reading, whole, bad)
    if chosen is not None and array.null_count == len(array) > whole.null_count:
        examples = ", ".join(map(shown_value, decoded(whole).drop_null().unique()[:3].to_pylist()))
        raise DataError(
            f"Column {name!r} cannot be of type {chosen!r}: none of its values ({examples}) can be read so.",
            "Choose another type or format with {}.",
            (Option("types"),),
        )
    if (doubt := doubt_of(name, reading, whole, array, chosen=chosen is not None)) is not None:
        notes.append(doubt)
    return reason_to_exclude(array, reading, identifiers=chosen is None) or reading.fit(name, array)


def _readable(name: str, reading: Reading, array: pa.Array, bad: BadCells) -> pa.Array:
    """The column with nulls in place of the cells that cannot be read as its type."""
    if reading.type in ("categorical", "text") or not (
        is_text(decoded(array).type) or reading.type in ("boolean", "date", "datetime")
    ):
        return array

    def read(cells: pa.Array) -> None:
        if cells.null_count < len(cells):
            reading.fit(name, cells).raw(cells)

    return read_cells(read, array, bad)[1]
