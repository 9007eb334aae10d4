"""The rows of a table with the highest scores, and the columns that contribute most to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import Option, SettingError
from ptad.explanation import make_explanation
from ptad.jobs.batches import JobOptions, TableJob
from ptad.jobs.explain import row_reasons
from ptad.jobs.scored_batch import CellCounts, decisions
from ptad.model import Model
from ptad.tables import BadCells
from ptad.tables.places import Places


@dataclass(frozen=True)
class TopRows:
    """The rows with the highest scores, the highest first, where the table's rows are, and what could not be read.

    Every entry has ``row`` (counted from 0), ``score``, ``p_value``, ``anomaly`` and ``columns``, a list as
    :func:`ptad.jobs.explain.row_reasons` makes it.
    """

    entries: list[dict[str, Any]]
    places: Places
    bad_cells: dict[str, int]


def top_rows(model_folder: str | Path, source: Any, *, top: int = 10, columns: int = 3, **options: Any) -> TopRows:
    """Return the ``top`` rows with the highest scores; equal scores are in the order of the table.

    The table is read batch by batch; the options are those of :class:`ptad.jobs.batches.JobOptions`.
    """
    for name, value in (("top", top), ("columns", columns)):
        if value < 1:
            raise SettingError(f"There is nothing to show: {name} is {value}.", "Give {} at least 1.", (Option(name),))
    job = TableJob(model_folder, source, JobOptions(**options))
    best: pa.Table | None = None
    numbers, scores = np.empty(0, dtype=np.int64), np.empty(0)
    cells = CellCounts.none(job.model.schema_)
    for start, batch, scored in job.scored():
        cells += scored.cells
        all_scores = np.concatenate([scores, scored.columns["score"].to_numpy()])
        order = np.argsort(-all_scores, kind="stable")[:top]
        numbers = np.concatenate([numbers, start + np.arange(batch.num_rows)])[order]
        scores = all_scores[order]
        own = pa.Table.from_batches([batch.select(job.known_names)])
        best = (own if best is None else pa.concat_tables([best, own])).take(pa.array(order)).combine_chunks()
    assert best is not None  # a table without rows is refused when it is opened
    return TopRows(explained_rows(job.model, best, numbers.tolist(), columns), job.scan.places, cells.bad_columns)


def explained_rows(
    model: Model, rows: pa.Table, numbers: list[int], columns: int, bad: BadCells | None = None
) -> list[dict[str, Any]]:
    """Return one entry per row, as in :class:`TopRows`; ``bad`` collects the cells that cannot be read."""
    explanation = make_explanation(rows, model.schema_, model.detector_, bad)
    said = pa.table(decisions(model, explanation.score_values)).to_pylist()
    reasons = row_reasons(explanation, columns)
    return [{"row": number, **said[i], "columns": reasons[i]} for i, number in enumerate(numbers)]
