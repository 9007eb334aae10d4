"""Some rows scored: what every engine and the service do with a batch, and what they count in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.explanation import make_explanation
from ptad.jobs.bad_cell_list import LIST, bad_cell_list, to_bytes
from ptad.jobs.batches import known_batches
from ptad.jobs.explain import why_columns
from ptad.messages import Message
from ptad.table_model import TableModel
from ptad.tables import BadCells, Schema, TableScan
from ptad.tables.notes import unread
from ptad.tables.places import located
from ptad.terms.base import cell_states

Counts = NDArray[np.int64]
CELLS = b"ptad.cells"  # where the result of a batch carries its counts, in the metadata of its schema


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


@dataclass(frozen=True)
class ScoredBatch:
    """What scoring says of some rows.

    Attributes
    ----------
    columns : dict of str to pyarrow.Array
        Score, p-value and flag, and the strongest columns if asked for.
    cells : CellCounts
        What is missing or unseen.
    bad : BadCells
        The cells that cannot be read.
    encoded : ndarray of shape (n_rows, n_features)
        The rows as the model sees them.
    """

    columns: dict[str, pa.Array]
    cells: CellCounts
    bad: BadCells
    encoded: NDArray[np.float64]

    def notes(self) -> dict[bytes, bytes]:
        """Return counts and bad cells in a compact form, to be kept beside the scores."""
        return {CELLS: self.cells.to_bytes(), LIST: to_bytes(self.bad)}


def score_batch(model: TableModel, rows: Any, explain: int = 0, *, strict: bool = False) -> ScoredBatch:
    """Score rows and name their ``explain`` strongest columns; ``strict`` refuses a cell that cannot be read."""
    bad = BadCells(strict=strict)
    encoded = model.schema_.encode(rows, bad)
    explanation = make_explanation(rows, model.schema_, model.detector_, bad, encoded) if explain else None
    scores = model.detector_.scores(encoded) if explanation is None else explanation.score_values
    found = decisions(model, scores) | ({} if explanation is None else why_columns(explanation, explain))
    return ScoredBatch(found, CellCounts.of(encoded, model.schema_, bad), bad, encoded)


def decisions(model: TableModel, scores: NDArray[np.float64]) -> dict[str, pa.Array]:
    """Return scores with their p-values and whether they are flagged; nulls where the model has no threshold."""
    calibration = model.detector_.calibration
    nothing = np.ones(len(scores), dtype=bool) if calibration is None else None
    p_values = scores if calibration is None else calibration.p_value(scores)
    flagged = np.zeros(len(scores), dtype=bool) if calibration is None else scores > -model.offset_
    return {
        "score": pa.array(scores, pa.float64()),
        "p_value": pa.array(p_values, pa.float64(), mask=nothing),
        "anomaly": pa.array(flagged, pa.bool_(), mask=nothing),
    }


def scored_batches(
    model: TableModel,
    scan: TableScan,
    *,
    strict: bool = False,
    bad_cells: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Iterator[tuple[int, pa.RecordBatch, ScoredBatch]]:
    """Yield (number of the first row, batch, what scoring says of it); the options are those of a scoring job."""
    with bad_cell_list(bad_cells, scan.places) as listed:
        for start, batch, known in known_batches(model, scan):
            with located(scan.places.after(start)):
                scored = score_batch(model, known, strict=strict)
            listed.add(scored.bad, start)
            yield start, batch, scored
            if progress is not None:
                progress(start + batch.num_rows, scan.n_rows)
