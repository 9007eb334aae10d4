"""The columns of a table as everything behind the border sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa


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
