"""Scoring a batch of rows, and counting its missing, unseen and bad cells: for every engine and the service."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.arrays import Matrix
from ptad.errors import DataError, Message
from ptad.explanation import make_explanation
from ptad.jobs.reasons import why_columns
from ptad.model import Model
from ptad.tables import BadCells, Schema
from ptad.tables.bad_cells import BadCell
from ptad.tables.notes import unread_column
from ptad.terms.base import cell_states

Counts = NDArray[np.int64]
CELLS, LIST = b"ptad.cells", b"ptad.bad_cells"  # metadata of the schema of a stored batch


@dataclass(frozen=True)
class CellCounts:
    """Counts of missing, unseen and bad cells; ``+`` adds up two batches."""

    names: tuple[str, ...]  # the columns that the model uses
    rows: int
    rows_missing: int  # rows with at least one missing value
    rows_unseen: int  # rows with at least one unseen category
    missing: Counts  # per column
    unseen: Counts
    bad: Counts  # cells that cannot be read, which are among the missing ones

    @classmethod
    def of(cls, encoded: Matrix, schema: Schema, bad: BadCells | None = None) -> Self:
        """Count in encoded rows, (n_rows, n_features), of which ``bad`` cells could not be read."""
        counts = bad.counts if bad else {}
        missing, unseen = cell_states(encoded, schema.features)
        rows = len(encoded), int(missing.any(axis=1).sum()), int(unseen.any(axis=1).sum())
        n_bad = np.array([counts.get(name, 0) for name in schema.names])
        return cls(schema.names, *rows, missing.sum(axis=0), unseen.sum(axis=0), n_bad)

    @classmethod
    def none(cls, schema: Schema) -> Self:
        """Return the counts of no rows at all."""
        return cls.of(np.empty((0, len(schema.features))), schema)

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(self.names, *(a + b for a, b in zip(self._figures(), other._figures(), strict=True)))

    def _figures(self) -> list[Any]:
        return list(vars(self).values())[1:]

    @property
    def missing_columns(self) -> dict[str, int]:
        """Columns with missing values and how many rows lack them, the most frequent first."""
        return self._ranked(self.missing)

    @property
    def unseen_columns(self) -> dict[str, int]:
        """Columns with unseen categories and how many rows hold one, the most frequent first."""
        return self._ranked(self.unseen)

    @property
    def bad_columns(self) -> dict[str, int]:
        """Columns with cells that cannot be read and how many, the most frequent first."""
        return self._ranked(self.bad)

    def _ranked(self, counts: Counts) -> dict[str, int]:
        return {self.names[j]: int(counts[j]) for j in np.argsort(-counts, kind="stable") if counts[j]}

    def unreadable_columns(self, schema: Schema) -> list[Message]:
        """Return a warning for each column in which no cell could be read."""
        columns = np.flatnonzero((self.bad > 1) & (self.missing == self.rows))
        return [unread_column(self.names[j], schema.types[self.names[j]], int(self.bad[j])) for j in columns]

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
        """Return a compact form, which is stored with the scores of a batch."""
        return json.dumps([np.asarray(figure).tolist() for figure in self._figures()]).encode()

    @classmethod
    def from_bytes(cls, blob: bytes, schema: Schema) -> Self:
        """Read back what :meth:`to_bytes` returned."""
        try:
            figures = json.loads(blob)
            return cls(schema.names, *figures[:3], *map(np.array, figures[3:]))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"The counts that are stored with the scores are damaged: {error}. Delete the output."
            ) from error


@dataclass(frozen=True)
class ScoredBatch:
    """The scores of a batch of rows."""

    columns: dict[str, pa.Array]  # score, p-value, flag, and those of why_columns, if any
    cells: CellCounts
    bad: Iterable[BadCell]  # the cells that cannot be read
    encoded: Matrix | None  # (n_rows, n_features); None for scores of an earlier run

    @property
    def anomalies(self) -> int:
        """How many rows are flagged."""
        return int(self.columns["anomaly"].true_count)

    def metadata(self) -> dict[bytes, bytes]:
        """Return counts and bad cells in a compact form, which is stored with the scores."""
        bad_cells = json.dumps([[c.row, c.column, c.value, c.quoted, c.expected] for c in self.bad]).encode()
        return {CELLS: self.cells.to_bytes(), LIST: bad_cells}

    def to_batch(self) -> pa.RecordBatch:
        """Return everything but the encoded rows as one record batch."""
        return pa.RecordBatch.from_pydict(self.columns, metadata=self.metadata())

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, schema: Schema) -> Self:
        """Read back what :meth:`to_batch` returned."""
        metadata = batch.schema.metadata
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return cls(columns, CellCounts.from_bytes(metadata[CELLS], schema), bad_cells_in(metadata), None)


def bad_cells_in(metadata: dict[bytes, bytes]) -> list[BadCell]:
    """Return the bad cells in the metadata of :meth:`ScoredBatch.metadata`."""
    return [BadCell(*cell) for cell in json.loads(metadata[LIST])]


def score_batch(model: Model, rows: Any, explain: int = 0, *, strict: bool = False) -> ScoredBatch:
    """Score rows and find their ``explain`` strongest columns; ``strict`` refuses a cell that cannot be read."""
    bad = BadCells(strict=strict)
    encoded = model.schema_.encode(rows, bad)
    explanation = make_explanation(rows, model.schema_, model.detector_, bad, encoded) if explain else None
    scores = model.detector_.scores(encoded) if explanation is None else explanation.score_values
    columns = decisions(model, scores) | ({} if explanation is None else why_columns(explanation, explain))
    return ScoredBatch(columns, CellCounts.of(encoded, model.schema_, bad), bad, encoded)


def decisions(model: Model, scores: Matrix) -> dict[str, pa.Array]:
    """Return scores, p-values and flags; the latter two are null for a model without a threshold."""
    calibration, n = model.detector_.calibration, len(scores)
    p_values, flags = pa.nulls(n, pa.float64()), pa.nulls(n, pa.bool_())
    if calibration is not None:
        p_values, flags = pa.array(calibration.p_value(scores)), pa.array(scores > -model.offset_)
    return {"score": pa.array(scores, pa.float64()), "p_value": p_values, "anomaly": flags}
