"""How many rows hold missing values and unseen categories, and in which columns; counted batch by batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.tables import Schema
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
    """

    names: tuple[str, ...]
    rows: int
    rows_missing: int
    rows_unseen: int
    missing: Counts
    unseen: Counts

    @classmethod
    def of(cls, encoded: NDArray[np.float64], schema: Schema) -> Self:
        """Count in encoded rows, (n_rows, n_features)."""
        missing, unseen = cell_states(encoded, schema.features)
        return cls(
            schema.names,
            len(encoded),
            int(missing.any(axis=1).sum()),
            int(unseen.any(axis=1).sum()),
            missing.sum(axis=0),
            unseen.sum(axis=0),
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
        )

    @property
    def missing_columns(self) -> dict[str, int]:
        """Columns with missing values and how many rows lack them, the most frequent first."""
        return _ranked(self.names, self.missing)

    @property
    def unseen_columns(self) -> dict[str, int]:
        """Columns with unseen categories and how many rows hold one, the most frequent first."""
        return _ranked(self.names, self.unseen)

    def to_json(self) -> dict[str, Any]:
        """Return plain types for people: columns without such cells are not listed."""
        return {
            "rows_with_missing_values": self.rows_missing,
            "rows_with_unseen_categories": self.rows_unseen,
            "columns_with_missing_values": self.missing_columns,
            "columns_with_unseen_categories": self.unseen_columns,
        }

    def to_bytes(self) -> bytes:
        """Return a compact form, to be kept beside the scores of a batch."""
        figures = [self.rows, self.rows_missing, self.rows_unseen, self.missing.tolist(), self.unseen.tolist()]
        return json.dumps(figures).encode()

    @classmethod
    def from_bytes(cls, blob: bytes, schema: Schema) -> Self:
        """Read back what :meth:`to_bytes` wrote."""
        try:
            rows, rows_missing, rows_unseen, missing, unseen = json.loads(blob)
            found = cls(schema.names, rows, rows_missing, rows_unseen, np.array(missing), np.array(unseen))
        except (ValueError, TypeError) as error:
            raise DataError(f"The counts kept beside the scores are damaged: {error}. Delete the output.") from error
        return found


def _ranked(names: tuple[str, ...], counts: Counts) -> dict[str, int]:
    order = np.argsort(-counts, kind="stable")
    return {names[j]: int(counts[j]) for j in order if counts[j]}
