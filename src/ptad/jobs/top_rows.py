"""The rows of a table with the highest scores, and the columns that contribute most to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import SettingError
from ptad.explanation import make_explanation
from ptad.jobs.batches import known_names, rows_per_batch, scan_for
from ptad.jobs.explain import row_reasons
from ptad.jobs.scored_batch import CellCounts, decisions, scored_batches
from ptad.messages import Option
from ptad.table_model import TableModel
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


def top_rows(
    model: TableModel,
    source: Any,
    *,
    top: int = 10,
    columns: int = 3,
    encoding: str = "utf-8",
    strict: bool = False,
    bad_cells: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> TopRows:
    """Return the ``top`` rows with the highest scores; equal scores are in the order of the table.

    The table is read batch by batch. ``strict`` and ``bad_cells`` are those of :func:`ptad.jobs.score.score_table`.
    """
    for name, value in (("top", top), ("columns", columns)):
        if value < 1:
            raise SettingError(f"There is nothing to show of {value} {name}.", "Give {} at least 1.", (Option(name),))
    scan = scan_for(model, source, batch_rows=rows_per_batch(model), encoding=encoding)
    best: pa.Table | None = None
    numbers, scores = np.empty(0, dtype=np.int64), np.empty(0)
    cells = CellCounts.none(model.schema_)
    for start, batch, scored in scored_batches(model, scan, strict=strict, bad_cells=bad_cells, progress=progress):
        cells += scored.cells
        all_scores = np.concatenate([scores, scored.columns["score"].to_numpy()])
        order = np.argsort(-all_scores, kind="stable")[:top]
        numbers = np.concatenate([numbers, start + np.arange(batch.num_rows)])[order]
        scores = all_scores[order]
        own = pa.Table.from_batches([batch])
        best = (own if best is None else pa.concat_tables([best, own])).take(pa.array(order)).combine_chunks()
    assert best is not None  # a table without rows is refused when it is opened
    known = best.select(known_names(model, best.column_names, say=False))
    return TopRows(explained_rows(model, known, numbers.tolist(), columns), scan.places, cells.bad_columns)


def explained_rows(
    model: TableModel, rows: pa.Table, numbers: list[int], columns: int, bad: BadCells | None = None
) -> list[dict[str, Any]]:
    """Return one entry per row, as in :class:`TopRows`; ``bad`` collects the cells that cannot be read."""
    explanation = make_explanation(rows, model.schema_, model.detector_, bad)
    said = pa.table(decisions(model, explanation.score_values)).to_pylist()
    reasons = row_reasons(explanation, columns)
    return [{"row": number, **said[i], "columns": reasons[i]} for i, number in enumerate(numbers)]
