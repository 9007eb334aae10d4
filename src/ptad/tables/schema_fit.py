"""Learning a schema from training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import DataError, SettingError
from ptad.messages import Option
from ptad.tables.bad_cells import BadCells, UnreadableCells, quoted
from ptad.tables.column_types import Column, Reading, reason_to_exclude
from ptad.tables.conversion import as_frame
from ptad.tables.delimited import DELIMITER
from ptad.tables.encoding import raw_block
from ptad.tables.frame import Frame
from ptad.tables.inference import read_columns
from ptad.tables.names import did_you_mean
from ptad.tables.notes import Note, doubt_of
from ptad.tables.numeric_column import NumericColumn, origin_of
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
    try:
        frame = as_frame(table, wanted=lambda name: name not in dropped and (only is None or name in only))
    except UnreadableCells as error:
        row = int(np.flatnonzero(error.bad)[0])
        raise DataError(
            f"Column {error.column!r}, row {row} (counted from 0): {quoted(error.array[row].as_py())} is not "
            f"{error.what}. An array takes numbers only; for text pass a table or records."
        ) from error
    _check_size(frame)
    _check_names(frame.names, {"types": tuple(chosen), "drop": dropped, "only": only or ()})
    texts = tuple(missing)
    unused = {n for n in frame.names if n in dropped or (only is not None and n not in only)}
    read = [n for n in frame.names if n not in unused and (frame.array is None or n in chosen)]
    place = {name: i for i, name in enumerate(frame.names)}
    cells = {name: without_named(frame.column(place[name]), texts) for name in read}
    readings, notes = read_columns(
        cells,
        {name: type_ for name, type_ in chosen.items() if name not in unused},
        decimal,
        thousands,
        semicolons=has_semicolons(table),
    )
    found = BadCells() if bad is None else bad
    excluded = {
        name: "dropped by the user" if name in dropped else "not among the columns chosen by the user"
        for name in frame.names
        if name in unused
    }
    columns: list[Column] = []
    places: list[int] = []
    for i, name in enumerate(frame.names):
        if name in excluded:
            continue
        if name not in readings:
            assert frame.array is not None
            fitted: Column | str = _array_column(name, frame.array[:, i])
        else:
            fitted = _fitted(name, readings[name], cells[name], chosen.get(name), found, notes)
        if isinstance(fitted, str):
            excluded[name] = fitted
        else:
            columns.append(fitted)
            places.append(i)
    if not columns:
        reasons = "; ".join(f"{name!r} ({reason})" for name, reason in list(excluded.items())[:30])
        raise DataError(
            f"No column is left to fit on: {reasons}.",
            "Add columns that vary, or set their types with {}.",
            (Option("types"),),
        )
    # column by column: one of them fits into memory; this checks all cells, and the bad ones are known already
    raw = (raw_block((c,), _chosen(frame, [i]), texts, BadCells()) for c, i in zip(columns, places, strict=True))
    rate = np.array([np.isnan(block[:, 0]).mean() for block in raw])
    if bad is None:
        found.warn()
    return Schema(frame.names, tuple(columns), rate, texts, excluded, frame.array is not None, tuple(notes))


def has_semicolons(table: Any) -> bool:
    """Whether a table comes from a file whose cells semicolons separate."""
    metadata = table.schema.metadata if isinstance(table, pa.Table | pa.RecordBatch) else None
    return (metadata or {}).get(DELIMITER) == b";"


def _check_size(frame: Frame) -> None:
    shape = f"(shape=({frame.n_rows}, {len(frame.names)}))"
    if not frame.names:
        raise DataError(f"0 feature(s) {shape} while a minimum of 1 is required. The table has no columns.")
    if frame.n_rows == 0:
        raise DataError(f"The table has 0 rows {shape}. At least 2 rows are needed to fit a model.")
    if frame.n_rows == 1:
        raise DataError(f"The table has 1 row (1 sample, {shape}). At least 2 rows are needed to fit a model.")


def _check_names(names: tuple[str, ...], given: dict[str, tuple[str, ...]]) -> None:
    for parameter, wanted in given.items():
        absent = [n for n in wanted if n not in names]
        if absent:
            raise DataError(
                f"The table has no column {', '.join(map(repr, absent))}.{did_you_mean(absent, names)} Its columns "
                f"are: {', '.join(map(repr, names[:30]))}.",
                "Correct the name in {}.",
                (Option(parameter),),
            )


def _array_column(name: str, values: np.ndarray) -> NumericColumn:
    if values.dtype.kind not in "iu":
        return NumericColumn(name, "numeric")
    return NumericColumn(name, "numeric", True, origin_of(int(values.min()), int(values.max())))


def _fitted(
    name: str, reading: Reading, cells: pa.Array, chosen: str | None, bad: BadCells, notes: list[Note]
) -> Column | str:
    """The encoder of a column, or the reason why it is excluded; what is questionable goes to ``notes``."""
    whole = without_missing(cells, ())
    array = _readable(name, reading, whole, bad)
    if chosen is not None and array.null_count == len(array) > whole.null_count:
        examples = ", ".join(map(quoted, decoded(whole).drop_null().unique()[:3].to_pylist()))
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
    while array.null_count < len(array):
        try:
            reading.fit(name, array).raw(array)
            break
        except UnreadableCells as error:
            bad.add(error)
            array = error.without()
    return array


def _chosen(frame: Frame, places: list[int]) -> Frame:
    names = tuple(frame.names[i] for i in places)
    if frame.array is not None:
        array = frame.array if len(places) == frame.array.shape[1] else frame.array[:, places]
        return Frame(names, None, array, frame.n_rows)
    assert frame.columns is not None
    return Frame(names, tuple(frame.columns[i] for i in places), None, frame.n_rows)
