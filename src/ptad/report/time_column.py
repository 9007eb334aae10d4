"""The column that tells when a row happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.messages import Option
from ptad.tables import BadCells, Schema, fit_schema
from ptad.tables.datetime_column import FIRST_SECOND, LAST_SECOND
from ptad.tables.encoding import read_cells
from ptad.tables.values import without_missing


class TimeColumn:
    """Reads the moments of rows, from a column that the model uses or from another one.

    Parameters
    ----------
    schema : Schema
        The schema of the model.
    name : str
        The column.
    """

    def __init__(self, schema: Schema, name: str) -> None:
        self.name, self._missing = name, schema.missing
        self._reader: Any = next((column for column in schema.columns if column.name == name), None)

    @classmethod
    def of(cls, schema: Schema, name: str | None) -> TimeColumn | None:
        """Return the named column, else the first one of date-times or dates that the model uses, if there is one."""
        if name is not None:
            return cls(schema, name)
        found = [[c.name for c in schema.columns if c.type == type_] for type_ in ("datetime", "date")]
        first = next((names[0] for names in found if names), None)
        return None if first is None or schema.from_array else cls(schema, first)

    def read(self, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return whole seconds since 1970, and which rows have none."""
        if self.name not in batch.schema.names:
            names = ", ".join(map(repr, batch.schema.names[:30]))
            raise DataError(
                f"The table has no time column {self.name!r}. Its columns are: {names}.",
                "Name one of them with {}.",
                (Option("time"),),
            )
        array = without_missing(batch.column(batch.schema.get_field_index(self.name)), self._missing)
        if self._reader is None:
            if array.null_count == len(array):
                return np.zeros(len(array), dtype=np.int64), np.ones(len(array), dtype=bool)
            self._reader = self._fitted(array)
        # not clipped to the training rows: what is new lies after them
        reader = replace(self._reader, first=FIRST_SECOND, last=LAST_SECOND, cycles=())
        # a cell that cannot be read counts as missing here too
        seconds = read_cells(reader.raw, array, BadCells())[0][:, 0] + FIRST_SECOND
        missing = np.isnan(seconds)
        return np.where(missing, 0, seconds).astype(np.int64), missing

    def _fitted(self, array: pa.Array) -> Any:
        try:
            return fit_schema(pa.table({self.name: array}), types={self.name: "datetime"}).columns[0]
        except DataError as error:
            raise DataError(
                f"The time column {self.name!r} cannot be read as dates. {error.message.problem}",
                "Name a column of dates with {}.",
                (Option("time"),),
            ) from error
