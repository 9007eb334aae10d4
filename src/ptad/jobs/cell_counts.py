"""How many rows hold missing values, unseen categories and cells that cannot be read; counted batch by batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.tables import BadCells, Schema
from ptad.terms.base import cell_states

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CellCounts:
    """Counts over some rows; ``+`` puts two batches together.

    Attributes
    ----------
    names : tuple of str
        The columns that the model uses.
    rows : int
        Rows looked at.
    rows_missing, rows_unseen : int
        Rows with at least one missing value, and with at least one unseen category.
    missing, unseen : ndarray of shape (n_columns,)
        The same per column.
    bad : ndarray of shape (n_columns,)
        Cells of each column that cannot be read; they are among the missing ones.
    """

    names: tuple[str, ...]
    rows: int
    rows_missing: int
    rows_unseen: int
    missing: Counts
    unseen: Counts
    bad: Counts

    @classmethod
    def of(cls, encoded: NDArray[np.float64], schema: Schema, bad: BadCells | None = None) -> Self:
        """Count in encoded rows, (n_rows, n_features), of which ``bad`` cells could not be read."""
        counts = bad.counts if bad else {}
        missing, unseen = cell_states(encoded, schema.features)
        return cls(
            schema.names,
            len(encoded),
            int(missing.any(axis=1).sum()),
            int(unseen.any(axis=1).sum()),
            missing.sum(axis=0),
            unseen.sum(axis=0),
            np.array([counts.get(name, 0) for name in schema.names]),
        )

    @classmethod
    def none(cls, schema: Schema) -> Self:
        """Return the counts of no rows at all."""
        return cls.of(np.empty((0, len(schema.features))), schema)

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(
            self.names,
            self.rows + other.rows,
            self.rows_missing + other.rows_missing,
            self.rows_unseen + other.rows_unseen,
            self.missing + other.missing,
            self.unseen + other.unseen,
            self.bad + other.bad,
        )

    @property
    def missing_columns(self) -> dict[str, int]:
        """Columns with missing values and how many rows lack them, the most frequent first."""
        return _ranked(self.names, self.missing)

    @property
    def unseen_columns(self) -> dict[str, int]:
        """Columns with unseen categories and how many rows hold one, the most frequent first."""
        return _ranked(self.names, self.unseen)

    @property
    def bad_columns(self) -> dict[str, int]:
        """Columns with cells that cannot be read and how many, the most frequent first."""
        return _ranked(self.names, self.bad)

    def to_json(self) -> dict[str, Any]:
        """Return plain types for people: columns without such cells are not listed."""
        return {
            "rows_with_missing_values": self.rows_missing,
            "rows_with_unseen_categories": self.rows_unseen,
            "columns_with_missing_values": self.missing_columns,
            "columns_with_unseen_categories": self.unseen_columns,
            "bad_cells": int(self.bad.sum()),
            "columns_with_bad_cells": self.bad_columns,
        }

    def to_bytes(self) -> bytes:
        """Return a compact form, to be kept beside the scores of a batch."""
        figures = [self.rows, self.rows_missing, self.rows_unseen]
        return json.dumps([*figures, *(c.tolist() for c in (self.missing, self.unseen, self.bad))]).encode()

    @classmethod
    def from_bytes(cls, blob: bytes, schema: Schema) -> Self:
        """Read back what :meth:`to_bytes` wrote."""
        try:
            rows, rows_missing, rows_unseen, *columns = json.loads(blob)
            missing, unseen, bad = map(np.array, columns)
            found = cls(schema.names, rows, rows_missing, rows_unseen, missing, unseen, bad)
        except (ValueError, TypeError) as error:
            raise DataError(f"The counts kept beside the scores are damaged: {error}. Delete the output.") from error
        return found


def _ranked(names: tuple[str, ...], counts: Counts) -> dict[str, int]:
    order = np.argsort(-counts, kind="stable")
    return {names[j]: int(counts[j]) for j in order if counts[j]}
