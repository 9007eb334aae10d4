"""The border: any table of any library in, one internal :class:`Frame` of Arrow columns out, and the way back.

Only narwhals knows which library a table came from; nothing behind this file does.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.tables.values import numbers, refused

# Python objects that hold other values: no single cell of a table may be one of them.
_CONTAINERS = (list, tuple, dict, set, frozenset, bytes, bytearray, np.ndarray, complex)


class CellTypeError(DataError, TypeError):
    """A cell of an array holds an object that is neither text nor a number (scikit-learn asks for a TypeError)."""


@dataclass(frozen=True)
class Frame:
    """Columns of equal length: either Arrow arrays, or one numeric numpy block.

    Attributes
    ----------
    names : tuple of str
        Column names; ``x0, x1, ...`` for an array.
    columns : tuple of pyarrow.Array, optional
        One array per name. ``None`` when ``array`` is given.
    array : numpy.ndarray, optional
        Float or integer block of shape (n_rows, n_columns).
    n_rows : int
        Number of rows.
    offset : int
        Index of the first row in the table that the caller gave, so that errors name the caller's row.
    positional : bool
        Whether the names only count positions.
    """

    names: tuple[str, ...]
    columns: tuple[pa.Array, ...] | None
    array: np.ndarray | None
    n_rows: int
    offset: int = 0
    positional: bool = False

    def slice(self, start: int, stop: int) -> Frame:
        """Rows ``start:stop`` without copying."""
        stop = min(stop, self.n_rows)
        columns = None if self.columns is None else tuple(c.slice(start, stop - start) for c in self.columns)
        array = None if self.array is None else self.array[start:stop]
        return replace(self, columns=columns, array=array, n_rows=stop - start, offset=self.offset + start)

    def column(self, index: int) -> pa.Array:
        """One column as an Arrow array."""
        if self.columns is not None:
            return self.columns[index]
        assert self.array is not None
        return pa.array(self.array[:, index], from_pandas=True)


def as_frame(table: Any, *, typed: bool = False, wanted: Callable[[str], bool] = lambda name: True) -> Frame:
    """Turn a pandas, polars or Arrow table, or a two-dimensional array, into a :class:`Frame`.

    An array of objects must hold numbers, unless ``typed``: then every column keeps its own type. Columns of a table
    that are not ``wanted`` are never looked at and come out as nulls.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        names = _checked_names(table.column_names)
        columns = tuple(
            _plain(c) if wanted(n) else pa.nulls(table.num_rows) for n, c in zip(names, table.columns, strict=True)
        )
        return Frame(names, columns, None, table.num_rows)
    native = None if isinstance(table, np.ndarray | list | tuple) else _narwhals_frame(table)
    if native is None:
        return _frame_of_array(table, typed)
    names = _checked_names(native.columns)
    columns = tuple(
        _arrow_of_series(n, s) if wanted(n) else pa.nulls(len(native))
        for n, s in zip(names, native.iter_columns(), strict=True)
    )
    return Frame(names, columns, None, len(native))


def same_kind(table: Any, columns: Mapping[str, Any]) -> Any:
    """Build a table from ``columns`` in the library that ``table`` belongs to.

    pandas gives pandas with the index of ``table`` kept, polars gives polars; Arrow tables and arrays give an Arrow
    table.
    """
    data = {name: _builtin(values) for name, values in columns.items()}
    native = None
    if not isinstance(table, np.ndarray | list | tuple | pa.Table | pa.RecordBatch):
        native = _narwhals_frame(table)
    if native is None:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in data.items()})
    built = nw.from_dict(data, backend=native.implementation)
    index = nw.maybe_get_index(native)
    made = built.to_native()
    if index is not None:
        made.index = index
    return made


def _builtin(values: Any) -> Any:
    # polars would make a column of opaque Python objects out of an object array; a list lets it see the types
    if isinstance(values, np.ndarray) and values.dtype.kind in "OUSM":
        return values.tolist() if values.dtype.kind != "M" else values.astype("datetime64[us]")
    return values


def _narwhals_frame(table: Any) -> nw.DataFrame[Any] | None:
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
            f"Columns without a name at position {_listed(unnamed)} (counted from 0). Rename them: every column is "
            "known by its name."
        )
    texts = tuple(str(n) for n in names)
    twice = [n for n, count in Counter(texts).items() if count > 1]
    if twice:
        raise DataError(f"Duplicate column names: {_listed(twice)}. Rename or drop them so that each name occurs once.")
    return texts


def _listed(items: Sequence[Any], limit: int = 10) -> str:
    shown = ", ".join(repr(i) for i in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def _frame_of_array(table: Any, typed: bool) -> Frame:
    if hasattr(table, "toarray"):
        raise DataError("Sparse input is not supported. Convert it with X.toarray() if it fits into memory.")
    if table is None or isinstance(table, str | bytes | dict):
        raise DataError(
            f"A table was expected, but got {type(table).__name__}. Pass an array or a pandas, polars or Arrow table; "
            "files are read with ptad.tables.read_table."
        )
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    with warnings.catch_warnings():
        # ragged lists end in an error below; numpy's own warning would only repeat it
        warnings.simplefilter("ignore")
        try:
            array = np.asarray(table)
        except ValueError as error:
            raise DataError(
                f"The table is not rectangular: {error}. Give every row the same number of cells."
            ) from error
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported. Pass the real and the imaginary part as two columns.")
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: X.reshape(-1, 1) for one column, "
            "X.reshape(1, -1) for one row."
        )
    if array.dtype.kind in "mM":
        raise DataError("An array of dates has no column names or types. Pass a pandas, polars or Arrow table instead.")
    names = tuple(f"x{i}" for i in range(array.shape[1]))
    if array.dtype.kind in "OUSTV" and typed:
        columns = tuple(arrow_of_objects(n, array[:, j].astype(object)) for j, n in enumerate(names))
        return Frame(names, columns, None, array.shape[0], positional=True)
    if array.dtype.kind in "OUSTV":
        array = _numeric_block(names, array)
    elif array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)):
        array = array.astype(np.float64)
    return Frame(names, None, array, array.shape[0], positional=True)


def _numeric_block(names: Sequence[str], array: np.ndarray) -> np.ndarray:
    block = np.empty(array.shape, dtype=np.float64)
    for j, name in enumerate(names):
        block[:, j] = numbers(arrow_of_objects(name, array[:, j].astype(object), in_array=True), name)
    return block


def _arrow_of_series(name: str, series: nw.Series[Any]) -> pa.Array:
    try:
        if series.dtype == nw.Object:
            return arrow_of_objects(name, series.to_numpy())
        return _plain(series.to_arrow())
    except (pa.ArrowException, OverflowError, TypeError):
        pass
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()  # numpy has no word for some types, such as integers of 128 bits
    return arrow_of_objects(name, values)


def arrow_of_objects(name: str, values: np.ndarray, *, in_array: bool = False) -> pa.Array:
    """Convert Python objects of any types to one Arrow array; mixed types become text.

    Numbers mixed with text, or integers too large for 64 bits, are turned into text, which the column types then read
    as any other text.
    """
    types = set(map(type, values))
    held = sorted(t.__name__ for t in types if issubclass(t, _CONTAINERS))
    if held and in_array:
        where = next(i for i, v in enumerate(values) if isinstance(v, _CONTAINERS))
        raise CellTypeError(
            f"Column {name!r}, row {where}: argument must be a string or a real number, not {held[0]!r}. "
            "Replace or drop that cell."
        )
    if held and not types <= {list, dict, bytes, type(None)}:
        raise refused(name, "/".join(held))
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


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
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
