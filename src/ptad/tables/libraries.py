"""The way back: what belongs to the rows of a table, in the library that the table came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.tables.conversion import narwhals_frame


def same_kind(table: Any, columns: Mapping[str, Any]) -> Any:
    """Build a table from ``columns`` in the library that ``table`` belongs to.

    pandas gives pandas with the index of ``table`` kept, polars gives polars; Arrow tables and everything else give an
    Arrow table.
    """
    data = {name: _builtin(values) for name, values in columns.items()}
    native = _native(table)
    if native is None:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in data.items()})
    return _indexed(nw.from_dict(data, backend=native.implementation).to_native(), native)


def same_series(table: Any, values: NDArray[Any], name: str) -> Any:
    """Return one value per row in the library that ``table`` belongs to.

    pandas gives a Series with the index of ``table``, polars a Series, and everything else a numpy array: Arrow has
    columns, but none that one could add or compare.
    """
    native = _native(table)
    if native is None:
        return values
    return _indexed(nw.new_series(name, values, backend=native.implementation).to_native(), native)


def _native(table: Any) -> nw.DataFrame[Any] | None:
    if isinstance(table, np.ndarray | list | tuple | pa.Table | pa.RecordBatch):
        return None
    return narwhals_frame(table)


def _indexed(made: Any, native: nw.DataFrame[Any]) -> Any:
    index = nw.maybe_get_index(native)
    if index is not None:
        made.index = index
    return made


def _builtin(values: Any) -> Any:
    # polars would make a column of opaque Python objects out of an object array; a list lets it see the types
    if isinstance(values, np.ndarray) and values.dtype.kind in "OUSM":
        return values.tolist() if values.dtype.kind != "M" else values.astype("datetime64[us]")
    return values
