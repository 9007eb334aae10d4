"""The rows of a table with the highest scores, and the columns that contribute most to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ptad.engines.local import known_batches, rows_from, rows_per_batch, scored_columns
from ptad.engines.why import row_reasons
from ptad.errors import SettingError
from ptad.tables import scan_table

if TYPE_CHECKING:
    from ptad.engines.local import AnyModel


def top_rows(
    model: AnyModel,
    source: Any,
    *,
    top: int = 10,
    columns: int = 3,
    encoding: str = "utf-8",
    progress: Callable[[int, int | None], None] | None = None,
) -> list[dict[str, Any]]:
    """Return the ``top`` rows with the highest scores, the highest first; equal scores in the order of the table.

    Every entry has ``row`` (counted from 0), ``score``, ``p_value``, ``anomaly`` and ``columns``, a list as
    :func:`ptad.engines.why.row_reasons` makes it. The table is read batch by batch.
    """
    for name, value in (("--top", top), ("--columns", columns)):
        if value < 1:
            raise SettingError(f"{name} must be at least 1. Got {value} instead.")
    scan = scan_table(source, batch_rows=rows_per_batch(model), encoding=encoding, schema=model.schema_)
    best: pa.Table | None = None
    numbers = np.empty(0, dtype=np.int64)
    scores = np.empty(0)
    for start, batch, known in known_batches(model, scan):
        with rows_from(start):
            found = model.anomaly_score(known)
        all_scores = np.concatenate([scores, found])
        order = np.argsort(-all_scores, kind="stable")[:top]
        numbers = np.concatenate([numbers, start + np.arange(batch.num_rows)])[order]
        scores = all_scores[order]
        held = (
            pa.Table.from_batches([known]) if best is None else pa.concat_tables([best, pa.Table.from_batches([known])])
        )
        best = held.take(pa.array(order)).combine_chunks()
        if progress is not None:
            progress(start + batch.num_rows, scan.n_rows)
    assert best is not None  # a table without rows is refused when it is opened
    return explained_rows(model, best, numbers.tolist(), columns)


def explained_rows(model: AnyModel, rows: pa.Table, numbers: list[int], columns: int) -> list[dict[str, Any]]:
    """Return one entry per row, as :func:`top_rows` does."""
    explanation = model.explain(rows)
    scored = {name: array.to_pylist() for name, array in scored_columns(model, rows).items()}
    reasons = row_reasons(explanation, columns)
    return [
        {"row": number, **{name: values[i] for name, values in scored.items()}, "columns": reasons[i]}
        for i, number in enumerate(numbers)
    ]
