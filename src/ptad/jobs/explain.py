"""The rows of a table with the highest scores, and the columns that contribute most to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.arrays import Mask, Matrix
from ptad.errors import SettingError
from ptad.explanation import make_explanation
from ptad.jobs.batches import JobOptions, TableJob
from ptad.jobs.reasons import row_reasons
from ptad.jobs.scored_batch import CellCounts, decisions
from ptad.model import Model
from ptad.tables import BadCells
from ptad.tables.places import Places


class TopRows:
    """The rows with the highest scores of all batches so far, the highest first; equal scores in the order of rows.

    ``numbers`` are their positions in the table, ``labels`` say which are labelled as anomalies.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: pa.Table | None = None
        self.scores = np.empty(0)
        self.numbers = np.empty(0, dtype=np.int64)
        self.labels = np.empty(0, dtype=bool)

    def add(self, batch: pa.RecordBatch, start: int, scores: Matrix, labels: Mask | None = None) -> None:
        """Compare the rows of a batch, which begins at row ``start`` of the table, with those so far."""
        best = np.argsort(-scores, kind="stable")[: self.size]
        labels = np.zeros(len(scores), dtype=bool) if labels is None else labels
        rows = pa.Table.from_batches([batch]).take(pa.array(best))
        all_rows = rows if self.rows is None else pa.concat_tables([self.rows, rows])
        all_scores = np.concatenate([self.scores, scores[best]])
        order = np.argsort(-all_scores, kind="stable")[: self.size]
        self.rows = all_rows.take(pa.array(order)).combine_chunks()  # a copy: the batches can be freed
        self.scores = all_scores[order]
        self.numbers = np.concatenate([self.numbers, start + best])[order]
        self.labels = np.concatenate([self.labels, labels[best]])[order]


def explain_table(
    model_folder: str | Path, source: Any, *, top: int = 10, columns: int = 3, **options: Any
) -> tuple[list[dict[str, Any]], Places, dict[str, int]]:
    """Explain the ``top`` rows with the highest scores by their ``columns`` strongest columns.

    The table is read batch by batch; the options are those of :class:`ptad.jobs.batches.JobOptions`. Returned are the
    entries of :func:`explained_rows`, the places of the rows of the table, and its bad cells by column.
    """
    for name, value in (("top", top), ("columns", columns)):
        if value < 1:
            raise SettingError(f"'{name}' must be at least 1. Got {value}.", f"Give {{{name}}} a larger number.")
    job = TableJob(model_folder, source, JobOptions(**options))
    highest, cells = TopRows(top), CellCounts.none(job.model.schema_)
    for start, batch, scored in job.scored():
        cells += scored.cells
        highest.add(batch.select(job.known_names), start, scored.columns["score"].to_numpy())
    entries = explained_rows(job.model, highest.rows, highest.numbers.tolist(), columns)
    return entries, job.scan.places, cells.bad_columns


def explained_rows(
    model: Model, rows: Any, numbers: list[int], columns: int, bad: BadCells | None = None
) -> list[dict[str, Any]]:
    """Return one entry per row: ``row`` (its number), ``score``, ``p_value``, ``anomaly`` and ``columns``.

    ``columns`` are the strongest ones, as of :func:`ptad.jobs.reasons.row_reasons`; ``bad`` collects the cells that
    cannot be read.
    """
    explanation = make_explanation(rows, model.schema_, model.detector_, bad)
    scores = pa.table(decisions(model, explanation.score_values)).to_pylist()
    reasons = row_reasons(explanation, columns)
    return [{"row": number, **scores[i], "columns": reasons[i]} for i, number in enumerate(numbers)]
