"""Scores and flagged rows over time, by any date column of a scored table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.errors import DataError
from ptad.report.over_time import TimeColumn, TimeTally
from ptad.report.score_histogram import ScoreScale
from ptad.service.problems import Problem
from ptad.service.scored_file import ScoredFile
from ptad.tables import fit_schema
from ptad.tables.inference import read_columns

PROFILE_ROWS = 2000  # of a text column, to see whether it holds dates
BATCH_ROWS = 65536


def date_columns(file: ScoredFile) -> list[str]:
    """Return the columns of the table that hold dates, by their type or by the text in their first rows."""
    return [name for name in file.own if _is_date(name, file)]


def _is_date(name: str, file: ScoredFile) -> bool:
    kind = file.schema.field(name).type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    try:
        readings, _ = read_columns({name: file.start(name, PROFILE_ROWS)}, {})
        return readings[name].type in ("date", "datetime")
    except (DataError, pa.ArrowException):
        return False


def timeline(file: ScoredFile, content: dict[str, Any], column: str | None) -> dict[str, Any]:
    """Return what the report says of scores over time, and ``columns``, from which another one can be named.

    Parameters
    ----------
    file : ScoredFile
        The scored table.
    content : dict
        The report of the scoring.
    column : str, optional
        A column of :func:`date_columns`; without it that of the report, or else the first one.
    """
    columns = date_columns(file)
    if column is not None and column not in columns:
        there = f"Its date columns are: {', '.join(map(repr, columns[:30]))}" if columns else "It has no date column"
        raise Problem(400, f"The scored table has no date column {column!r}. {there}.")
    if not columns:
        return {"column": None, "columns": [], "buckets": []}
    scores, shown = content["scores"], (content["over_time"] or {}).get("column")
    name = column or (shown if shown in columns else columns[0])
    start = file.start(name, PROFILE_ROWS)
    tally = TimeTally(name, float(scores["threshold"]), ScoreScale(*scores["scale"]))
    if len(start) < 2:  # one row makes no period
        return {**tally.content(), "columns": columns}
    reader = TimeColumn(fit_schema(pa.table({name: start}), types={name: "datetime"}), name)
    score = f"{file.prefix}score"
    with pq.ParquetFile(file.path) as parquet:
        for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=[name, score], use_threads=False):
            tally.add(*reader.read(batch), batch.column(score).to_numpy())
    return {**tally.content(), "columns": columns}
