"""Text columns of training rows, as fitted without some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ptad.tables.encoding import spans
from ptad.tables.text_column import TextColumn

if TYPE_CHECKING:
    from ptad.tables.schema import Schema


@dataclass(frozen=True)
class CountedText:
    """The text columns of a training table, whose values its own rows have counted.

    A row that is held out of a fit must not have counted itself: it would look more familiar than a new row does.

    Attributes
    ----------
    schema : Schema
        The schema of all rows.
    codes : dict of int to ndarray
        Place of a text column to which remembered value each row has.
    """

    schema: Schema
    codes: dict[int, np.ndarray]

    def rows(self, encoded: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return all encoded rows as a schema fitted without the rows ``held`` encodes them."""
        found = encoded.copy()
        for i, span in enumerate(spans(self.schema.columns)):
            column = self.schema.columns[i]
            if isinstance(column, TextColumn):
                found[:, span] = column.recounted(encoded[:, span], self.codes[i], held)
        return found

    def without(self, encoded: np.ndarray, held: np.ndarray) -> Schema:
        """Return the schema as fitted without the rows ``held``."""
        columns = list(self.schema.columns)
        for i, span in enumerate(spans(self.schema.columns)):
            column = columns[i]
            if isinstance(column, TextColumn):
                present = int((~np.isnan(encoded[held, span.start])).sum())
                columns[i] = column.without(self.codes[i][held], present)
        return replace(self.schema, columns=tuple(columns))
