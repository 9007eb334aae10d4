"""The border: any table of any library in, one record batch of plain Arrow columns out.

Only narwhals knows which library a table came from; nothing behind this file does. The way back is in
:mod:`ptad.tables.libraries`.
"""

from __future__ import annotations

import numbers as numbers_abc
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.tables.names import listed
from ptad.tables.values import numbers, unusable_type

# Python objects that hold other values: no single cell of a table may be one of them.
_CONTAINERS = (list, tuple, dict, set, frozenset, bytes, bytearray, np.ndarray, complex)


class CellTypeError(DataError, TypeError):
    """A cell of an array holds an object that is neither text nor a number (scikit-learn asks for a TypeError)."""


def as_frame(table: Any, *, typed: bool = False, wanted: Callable[[str], bool] = lambda name: True) -> pa.RecordBatch:
    """Turn everything that :func:`as_table` takes into a batch of Arrow columns; those of an array are x0, x1, ...

    An array of objects must hold numbers, unless ``typed``: then every column keeps its own type. Columns of a table
    that are not ``wanted`` are never looked at and come out as nulls.
    """
    table = as_table(table)
    if isinstance(table, np.ndarray):
        names = tuple(f"x{i}" for i in range(table.shape[1]))
        return pa.RecordBatch.from_arrays(_columns_of_array(names, table, typed), names=names)
    columns: Iterable[Any]
    convert: Callable[[Any, str], pa.Array]
    if isinstance(table, pa.Table):
        given, columns, convert = table.column_names, table.columns, _plain
    else:
        native = narwhals_frame(table)
        assert native is not None  # what is no table does not get here
        given, columns, convert = native.columns, native.iter_columns(), _arrow_of_series
    names = _checked_names(given)
    cells = [convert(c, n) if wanted(n) else pa.nulls(len(table)) for n, c in zip(names, columns, strict=True)]
    return pa.RecordBatch.from_arrays(cells, names=names)


def narwhals_frame(table: Any) -> nw.DataFrame[Any] | None:
    """Return the table of a library as narwhals sees it, or None if it is no such table."""
    try:
        frame = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        _checked_names(list(table.columns))
        raise
    if isinstance(frame, nw.LazyFrame):
        raise DataError("The table is lazy and holds no rows yet. Call its collect() first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def _checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    unnamed = [i for i, n in enumerate(names) if n is None or n != n or not str(n).strip()]
    if unnamed:
        raise DataError(
            f"Columns without a name at position {listed(unnamed)} (counted from 0). Rename them: every column is "
            "known by its name."
        )
    texts = tuple(str(n) for n in names)
    twice = [n for n, count in Counter(texts).items() if count > 1]
    if twice:
        raise DataError(f"Duplicate column names: {listed(twice)}. Rename or drop them so that each name occurs once.")
    return texts


def as_table(table: Any) -> Any:
    """Return a table of a library as it is, everything else as a two-dimensional array or an Arrow table.

    Lists of rows become an array; a list of dicts and a dict of columns become an Arrow table. What is no table is
    refused: the message says what to pass instead.
    """
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    # before dicts: one kind of sparse matrix is one
    if hasattr(table, "toarray"):
        raise DataError("Sparse input is not supported. Convert it with X.toarray() if it fits into memory.")
    if isinstance(table, Mapping):
        return _table_of_columns(table)
    if isinstance(table, np.ndarray) and table.dtype.names:
        return _table_of_columns({name: table[name] for name in table.dtype.names})
    if isinstance(table, list | tuple) and table and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return _table_of_columns({name: [row.get(name) for row in table] for name in names})
    if not isinstance(table, np.ndarray | list | tuple):
        if narwhals_frame(table) is not None:
            return table
        _refuse_other_than_table(table)
    return _array_of(table)


def _table_of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    names = _checked_names(list(columns))
    arrays = []
    for name, cells in zip(names, columns.values(), strict=True):
        if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
            raise DataError(
                f"Column {name!r} of the dict holds {type(cells).__name__}, not a list of cells. Give one list per "
                "column; one row is a list with one dict."
            )
        arrays.append(arrow_of_objects(name, list(cells)))
    lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r}: {length:,}" for name, length in list(lengths.items())[:10])
        raise DataError(f"The columns of the dict differ in length ({shown}). Give each the same number of cells.")
    return pa.table(dict(zip(names, arrays, strict=True)))


def _refuse_other_than_table(table: Any) -> None:
    """Raise for what people pass in place of a table; other objects may still turn into an array."""
    kind = type(table).__name__
    if isinstance(nw.from_native(table, pass_through=True, allow_series=True), nw.Series):
        raise DataError(
            f"A table was expected, but got a {kind}, which may be one row or one column. For one row write "
            "table.iloc[[i]] (pandas) or table[[i]] (polars); for one column write series.to_frame()."
        )
    if isinstance(table, str | bytes | os.PathLike):
        raise DataError(
            f"A table was expected, but got {kind}. Read a file first: "
            "from ptad.tables import read_table; read_table(path)."
        )
    if table is None or isinstance(table, bool | numbers_abc.Number | np.generic) or not hasattr(table, "__array__"):
        raise DataError(
            f"A table was expected, but got {kind}. Pass a pandas, polars or Arrow table, a list of dicts, or an array "
            "with one row per row; one row is [[1.0, 2.0]]."
        )


def _array_of(table: Any) -> np.ndarray:
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    with warnings.catch_warnings():
        # ragged lists end in an error below; numpy's own warning would only repeat it
        warnings.simplefilter("ignore")
        try:
            array = np.asarray(table)
        except ValueError as error:
            raise DataError(
                "The table is not rectangular: its rows differ in length. Give every row the same number of cells."
            ) from error
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported. Pass the real and the imaginary part as two columns.")
    if array.shape == (0,):
        raise DataError("The table is empty. Give at least one row.")
    if array.ndim != 2:
        remedy = "X.reshape(len(X), -1) for one row per item"
        if array.ndim < 2:
            remedy = "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        raise DataError(f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: {remedy}.")
    return array


def _columns_of_array(names: Sequence[str], array: np.ndarray, typed: bool) -> list[pa.Array]:
    if array.dtype.kind in "mM":
        raise DataError("An array of dates has no column names or types. Pass a pandas, polars or Arrow table instead.")
    if array.dtype.kind in "OUSTV":
        convert = arrow_of_objects if typed else _numbers_of_objects
        return [convert(name, array[:, j].astype(object)) for j, name in enumerate(names)]
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)):
        array = array.astype(np.float64)
    return [pa.array(array[:, j], from_pandas=True) for j in range(len(names))]


def _numbers_of_objects(name: str, values: np.ndarray) -> pa.Array:
    try:
        return pa.array(numbers(arrow_of_objects(name, values, in_array=True), name), from_pandas=True)
    except CellTypeError:
        raise
    except DataError as error:
        raise DataError(
            f"{error.message.problem} An array takes numbers only; for text pass a table or records."
        ) from error


def _arrow_of_series(series: nw.Series[Any], name: str) -> pa.Array:
    try:
        if series.dtype == nw.Object:
            return arrow_of_objects(name, series.to_numpy())
        return _plain(series.to_arrow())
    except (pa.ArrowException, OverflowError, TypeError):
        pass
    return arrow_of_objects(name, series.to_list())  # numpy has no word for some types, such as integers of 128 bits


def arrow_of_objects(name: str, cells: Sequence[Any] | np.ndarray, *, in_array: bool = False) -> pa.Array:
    """Convert Python objects of any types to one Arrow array; mixed types become text.

    Numbers mixed with text, or integers too large for 64 bits, are turned into text, which the column types then read
    as any other text.
    """
    values = np.empty(len(cells), dtype=object)
    values[:] = cells  # cell by cell: numpy would turn equal lists into a second dimension
    types = set(map(type, values))
    held = sorted(t.__name__ for t in types if issubclass(t, _CONTAINERS))
    if held and in_array:
        where = next(i for i, v in enumerate(values) if isinstance(v, _CONTAINERS))
        raise CellTypeError(
            f"Column {name!r}, row {where}: argument must be a string or a real number, not {held[0]!r}. "
            "Replace or drop that cell."
        )
    if held and not types <= {list, dict, bytes, type(None)}:
        raise unusable_type(name, "/".join(held))
    try:
        return _plain(pa.array(values, from_pandas=True))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        text = values.astype(str).astype(object)
        # a float reads as it would in a column of floats alone: a mixed column cut to one row is the same text
        floats = np.fromiter((isinstance(v, float) for v in values), dtype=bool, count=len(values))
        text[floats] = pa.array(values[floats].astype(np.float64)).cast(pa.string()).to_numpy(zero_copy_only=False)
        nothing = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
        return pa.array(text, type=pa.large_string(), mask=nothing)


def _is_missing(value: Any) -> bool:
    # NaN and NaT are not equal to themselves; pandas' NA gives no truth value at all, but its type has a name
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _plain(column: pa.Array | pa.ChunkedArray, name: str = "") -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combining zero chunks, or more text than fits one array
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        array = pc.run_end_decode(array)
    if pa.types.is_float16(kind):  # few functions of Arrow know it
        array = array.cast(pa.float32())
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    return array
