"""The rows of a table with the highest scores, and the columns that contribute most to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import SettingError
from ptad.explanation import make_explanation
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.batches import known_batches, rows_per_batch, scan_for
from ptad.jobs.explain import row_reasons
from ptad.jobs.scored_batch import score_batch
from ptad.messages import Option
from ptad.table_model import TableModel
from ptad.tables import BadCells
from ptad.tables.places import Places, located


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
    numbers = np.empty(0, dtype=np.int64)
    scores = np.empty(0)
    counts = Counter[str]()
    with bad_cell_list(bad_cells, scan.places) as listed:
        for start, batch, known in known_batches(model, scan):
            bad = BadCells(strict=strict)
            with located(scan.places.after(start)):
                found = model.detector_.scores(model.schema_.encode(known, bad))
            listed.add(bad, start)
            counts.update(bad.counts)
            all_scores = np.concatenate([scores, found])
            order = np.argsort(-all_scores, kind="stable")[:top]
            numbers = np.concatenate([numbers, start + np.arange(batch.num_rows)])[order]
            scores = all_scores[order]
            own = pa.Table.from_batches([known])
            best = (own if best is None else pa.concat_tables([best, own])).take(pa.array(order)).combine_chunks()
            if progress is not None:
                progress(start + batch.num_rows, scan.n_rows)
    assert best is not None  # a table without rows is refused when it is opened
    entries = explained_rows(model, best, numbers.tolist(), columns)
    return TopRows(entries, scan.places, dict(counts.most_common()))


def explained_rows(
    model: TableModel, rows: pa.Table, numbers: list[int], columns: int, bad: BadCells | None = None
) -> list[dict[str, Any]]:
    """Return one entry per row, as in :class:`TopRows`; ``bad`` collects the cells that cannot be read."""
    explanation = make_explanation(rows, model.schema_, model.detector_, bad)
    scored = {name: array.to_pylist() for name, array in score_batch(model, rows).columns.items()}
    reasons = row_reasons(explanation, columns)
    return [
        {"row": number, **{name: values[i] for name, values in scored.items()}, "columns": reasons[i]}
        for i, number in enumerate(numbers)
    ]
