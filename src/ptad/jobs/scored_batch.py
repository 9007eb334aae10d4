"""Some rows scored: what every engine and the service do with a batch, and what they count in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError, Message
from ptad.explanation import make_explanation
from ptad.jobs.explain import why_columns
from ptad.model import Model
from ptad.tables import BadCells, Schema
from ptad.tables.bad_cells import BadCell
from ptad.tables.notes import unread
from ptad.terms.base import cell_states

Counts = NDArray[np.int64]
CELLS, LIST = b"ptad.cells", b"ptad.bad_cells"  # what the result of a batch carries in the metadata of its schema


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

    def unread(self, schema: Schema) -> list[Message]:
        """Return a warning for each column in which no cell at all could be read: it says nothing about any row."""
        found = np.flatnonzero((self.bad > 1) & (self.missing == self.rows))
        return [unread(self.names[j], schema.types[self.names[j]], int(self.bad[j])) for j in found]

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
        return json.dumps([np.asarray(figure).tolist() for figure in self._figures()]).encode()

    @classmethod
    def from_bytes(cls, blob: bytes, schema: Schema) -> Self:
        """Read back what :meth:`to_bytes` wrote."""
        try:
            figures = json.loads(blob)
            return cls(schema.names, *figures[:3], *map(np.array, figures[3:]))
        except (ValueError, TypeError) as error:
            raise DataError(f"The counts kept beside the scores are damaged: {error}. Delete the output.") from error


@dataclass(frozen=True)
class ScoredBatch:
    """What scoring says of some rows.

    Attributes
    ----------
    columns : dict of str to pyarrow.Array
        Score, p-value and flag, and the strongest columns if asked for.
    cells : CellCounts
        What is missing or unseen.
    bad : iterable of BadCell
        The cells that cannot be read.
    encoded : ndarray of shape (n_rows, n_features), optional
        The rows as the model sees them; None for results of an earlier run.
    """

    columns: dict[str, pa.Array]
    cells: CellCounts
    bad: Iterable[BadCell]
    encoded: NDArray[np.float64] | None

    @property
    def anomalies(self) -> int:
        """How many rows are flagged."""
        return int(self.columns["anomaly"].true_count)

    def notes(self) -> dict[bytes, bytes]:
        """Return counts and bad cells in a compact form, to be kept beside the scores."""
        listed = json.dumps([[c.row, c.column, c.value, c.shown, c.what] for c in self.bad]).encode()
        return {CELLS: self.cells.to_bytes(), LIST: listed}

    def to_batch(self) -> pa.RecordBatch:
        """Return everything but the encoded rows as one batch, to be kept."""
        return pa.RecordBatch.from_pydict(self.columns, metadata=self.notes())

    @classmethod
    def from_batch(cls, kept: pa.RecordBatch, schema: Schema) -> Self:
        """Read back what :meth:`to_batch` wrote."""
        notes = kept.schema.metadata
        columns = dict(zip(kept.schema.names, kept.columns, strict=True))
        return cls(columns, CellCounts.from_bytes(notes[CELLS], schema), bad_cells_in(notes), None)


def bad_cells_in(notes: dict[bytes, bytes]) -> list[BadCell]:
    """Return the cells that :meth:`ScoredBatch.notes` names."""
    return [BadCell(*cell) for cell in json.loads(notes[LIST])]


def score_batch(model: Model, rows: Any, explain: int = 0, *, strict: bool = False) -> ScoredBatch:
    """Score rows and name their ``explain`` strongest columns; ``strict`` refuses a cell that cannot be read."""
    bad = BadCells(strict=strict)
    encoded = model.schema_.encode(rows, bad)
    explanation = make_explanation(rows, model.schema_, model.detector_, bad, encoded) if explain else None
    scores = model.detector_.scores(encoded) if explanation is None else explanation.score_values
    found = decisions(model, scores) | ({} if explanation is None else why_columns(explanation, explain))
    return ScoredBatch(found, CellCounts.of(encoded, model.schema_, bad), bad, encoded)


def decisions(model: Model, scores: NDArray[np.float64]) -> dict[str, pa.Array]:
    """Return scores with their p-values and whether they are flagged; nulls where the model has no threshold."""
    calibration = model.detector_.calibration
    found = {"score": pa.array(scores, pa.float64())}
    if calibration is None:
        return found | {"p_value": pa.nulls(len(scores), pa.float64()), "anomaly": pa.nulls(len(scores), pa.bool_())}
    return found | {"p_value": pa.array(calibration.p_value(scores)), "anomaly": pa.array(scores > -model.offset_)}
