"""Conversion of a table of any library to Arrow, and of results back to that library.

Only narwhals knows which library a table belongs to; the rest of the package sees Arrow.
"""

from __future__ import annotations

import numbers as numbers_abc
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.tables.names import listed, repeated
from ptad.tables.values import numbers, unusable_type

MAX_INT64 = 2**63 - 1
# Types that a single cell must not have.
_CONTAINERS = (list, tuple, dict, set, frozenset, bytes, bytearray, np.ndarray, complex)


class CellTypeError(DataError, TypeError):
    """A cell of an array holds an object that is neither text nor a number (scikit-learn asks for a TypeError)."""


def as_frame(table: Any, *, typed: bool = False, convert: Callable[[str], bool] = lambda name: True) -> pa.RecordBatch:
    """Convert any table to a batch of Arrow columns; those of an array are named x0, x1, ...

    An array of objects must hold numbers, unless ``typed``: then every column keeps its own type. Columns of a table
    that ``convert`` is false for are not read and become nulls.
    """
    table = as_table(table)
    if isinstance(table, np.ndarray):
        names = tuple(f"x{i}" for i in range(table.shape[1]))
        return pa.RecordBatch.from_arrays(_columns_of_array(names, table, typed), names=names)
    columns: Iterable[pa.ChunkedArray | nw.Series[Any]]
    if isinstance(table, pa.Table):
        names, columns = _checked_names(table.column_names), table.columns
    else:
        frame = _narwhals_frame(table)
        assert frame is not None  # as_table has refused everything else
        names, columns = _checked_names(frame.columns), frame.iter_columns()
    arrays = [_to_arrow(c, n) if convert(n) else pa.nulls(len(table)) for n, c in zip(names, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _narwhals_frame(table: Any) -> nw.DataFrame[Any] | None:
    """Return the table of a library as a data frame of narwhals, None for other objects."""
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
    if duplicates := repeated(texts):
        raise DataError(
            f"Duplicate column names: {listed(duplicates)}. Rename or drop them so that each name occurs once."
        )
    return texts


def as_table(table: Any) -> Any:
    """Return a table of a library as it is, everything else as a two-dimensional array or an Arrow table.

    Lists of rows become an array; a list of dicts and a dict of columns become an Arrow table. For other objects the
    error says what to pass instead.
    """
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    # before mappings: a sparse matrix of the format dok is one
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
        if _narwhals_frame(table) is not None:
            return table
        _check_array_like(table)
    return _to_array(table)


def _table_of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    names = _checked_names(list(columns))
    arrays = []
    for name, cells in zip(names, columns.values(), strict=True):
        if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable):
            raise DataError(
                f"Column {name!r} of the dict holds {type(cells).__name__}, not a list of cells. Give one list per "
                "column; one row is a list with one dict."
            )
        arrays.append(objects_to_arrow(name, list(cells)))
    if len(set(map(len, arrays))) > 1:
        lengths = ", ".join(f"{name!r}: {len(array):,}" for name, array in list(zip(names, arrays, strict=True))[:10])
        raise DataError(f"The columns of the dict differ in length ({lengths}). Give each the same number of cells.")
    return pa.table(dict(zip(names, arrays, strict=True)))


def _check_array_like(table: Any) -> None:
    """Raise for objects that cannot become an array, with a remedy for common mistakes."""
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


def _to_array(table: Any) -> np.ndarray:
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
        convert = objects_to_arrow if typed else _objects_to_numbers
        return [convert(name, array[:, j].astype(object)) for j, name in enumerate(names)]
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)):
        array = array.astype(np.float64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # Arrow has no other byte order than the machine's
    return [pa.array(array[:, j], from_pandas=True) for j in range(len(names))]


def _objects_to_numbers(name: str, values: np.ndarray) -> pa.Array:
    try:
        return pa.array(numbers(objects_to_arrow(name, values, in_array=True), name), from_pandas=True)
    except CellTypeError:
        raise
    except DataError as error:
        raise DataError(
            f"{error.message.problem} An array takes numbers only; for text pass a table or records."
        ) from error


def _to_arrow(column: pa.ChunkedArray | nw.Series[Any], name: str) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return _standard_type(column)
    with suppress(pa.ArrowException, OverflowError, TypeError):
        if column.dtype == nw.Object:
            return objects_to_arrow(name, column.to_numpy())
        return _standard_type(column.to_arrow())
    return objects_to_arrow(name, column.to_list())  # types that Arrow does not have, such as integers of 128 bits


def objects_to_arrow(name: str, cells: Sequence[Any] | np.ndarray, *, in_array: bool = False) -> pa.Array:
    """Convert Python objects of any types to one Arrow array.

    Mixed types, such as numbers and text, and integers too large for 64 bits become text, which is then read as any
    other text.
    """
    values = np.empty(len(cells), dtype=object)
    values[:] = cells  # cell by cell: numpy would turn equal lists into a second dimension
    types = set(map(type, values))
    containers = sorted(t.__name__ for t in types if issubclass(t, _CONTAINERS))
    if containers and in_array:
        row = next(i for i, v in enumerate(values) if isinstance(v, _CONTAINERS))
        raise CellTypeError(
            f"Column {name!r}, row {row}: argument must be a string or a real number, not {containers[0]!r}. "
            "Replace or drop that cell."
        )
    if containers and not types <= {list, dict, bytes, type(None)}:
        raise unusable_type(name, "/".join(containers))
    try:
        return _standard_type(pa.array(values, from_pandas=True))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        text = values.astype(str).astype(object)
        # floats are formatted as in a column of floats: a row of a mixed column alone becomes the same text
        floats = np.fromiter((isinstance(v, float) for v in values), dtype=bool, count=len(values))
        text[floats] = pa.array(values[floats].astype(np.float64)).cast(pa.string()).to_numpy(zero_copy_only=False)
        missing = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
        return pa.array(text, type=pa.large_string(), mask=missing)


def _is_missing(value: Any) -> bool:
    # NaN and NaT are not equal to themselves; a comparison of pandas' NA has no truth value
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _standard_type(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array, without Arrow types that few functions know."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combining zero chunks, or more text than fits one array
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        array = pc.run_end_decode(array)
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    return array


def same_kind(table: Any, columns: Mapping[str, Any]) -> Any:
    """Build a table from ``columns`` in the library that ``table`` belongs to.

    pandas gives pandas with the index of ``table``, polars gives polars, everything else an Arrow table.
    """
    data = {name: _builtin_types(values) for name, values in columns.items()}
    frame = _library_frame(table)
    if frame is None:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in data.items()})
    return _with_index(nw.from_dict(data, backend=frame.implementation).to_native(), frame)


def same_series(table: Any, values: NDArray[Any], name: str) -> Any:
    """Return one value per row in the library that ``table`` belongs to.

    pandas gives a Series with the index of ``table``, polars a Series, and everything else a numpy array.
    """
    frame = _library_frame(table)
    if frame is None:
        return values
    return _with_index(nw.new_series(name, values, backend=frame.implementation).to_native(), frame)


def _library_frame(table: Any) -> nw.DataFrame[Any] | None:
    is_other = isinstance(table, np.ndarray | list | tuple | pa.Table | pa.RecordBatch)
    return None if is_other else _narwhals_frame(table)


def _with_index(result: Any, frame: nw.DataFrame[Any]) -> Any:
    index = nw.maybe_get_index(frame)
    if index is not None:
        result.index = index
    return result


def _builtin_types(values: Any) -> Any:
    # polars makes a column of opaque Python objects of an object array; of a list it infers the types
    if isinstance(values, np.ndarray) and values.dtype.kind in "OUSM":
        values = values.tolist() if values.dtype.kind != "M" else values.astype("datetime64[us]")
    if isinstance(values, list) and any(isinstance(v, int) and v > MAX_INT64 for v in values):
        # of a list, libraries infer 64 bits with a sign; unsigned numbers are never missing in an array of numpy
        whole = all(isinstance(v, int) and v >= 0 for v in values)
        return np.array(values, dtype=np.uint64) if whole else [None if v is None else float(v) for v in values]
    return values
