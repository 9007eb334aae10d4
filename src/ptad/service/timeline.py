"""Scores and flags over time, by a date column of a scored table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError
from ptad.service.problems import Problem
from ptad.service.scored_file import ScoredFile
from ptad.tables.kinds import detect_kind
from ptad.tables.moment_column import is_zoned
from ptad.tables.values import decoded, moments

MOST_PERIODS = 120
PROFILE_ROWS = 2000
# name, numpy's unit, how many of them, and where the first one begins: weeks begin on Monday, 1970 on a Thursday
PERIODS = (
    ("second", "s", 1, 0),
    ("minute", "m", 1, 0),
    ("hour", "h", 1, 0),
    ("day", "D", 1, 0),
    ("week", "D", 7, 3),
    ("month", "M", 1, 0),
    ("quarter", "M", 3, 0),
    ("year", "Y", 1, 0),
    ("decade", "Y", 10, 0),
    ("century", "Y", 100, 30),
)


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
        return detect_kind(name, file.column(name).slice(0, PROFILE_ROWS).combine_chunks()) in ("date", "datetime")
    except (DataError, pa.ArrowException):
        return False


def timeline(file: ScoredFile, column: str | None) -> dict[str, Any]:
    """Return rows, flagged rows and scores by period of a date column, the first one if none is named.

    Parameters
    ----------
    file : ScoredFile
        The scored table.
    column : str, optional
        A column of :func:`date_columns`.
    """
    columns = date_columns(file)
    if column is not None and column not in columns:
        there = f"Its date columns are: {', '.join(map(repr, columns[:30]))}" if columns else "It has no date column"
        raise Problem(400, f"The scored table has no date column {column!r}. {there}.")
    if not columns:
        return {"column": None, "columns": [], "period": None, "undated": 0, "periods": []}
    chosen = columns[0] if column is None else column
    values = decoded(pa.concat_arrays(file.column(chosen).chunks) if file.column(chosen).num_chunks else pa.array([]))
    try:
        seconds, _, missing = moments(values, chosen, 0, zoned=is_zoned(values))
    except DataError as error:  # only the first rows were looked at
        raise Problem(400, str(error)) from error
    scores, _, flags = file.scores()
    kept = ~missing
    name, periods = _periods(seconds[kept], scores[kept], flags[kept])
    return {"column": chosen, "columns": columns, "period": name, "undated": int(missing.sum()), "periods": periods}


def _periods(
    seconds: NDArray[np.int64], scores: NDArray[np.float64], flags: NDArray[np.bool_]
) -> tuple[str | None, list[dict[str, Any]]]:
    """Cut time into periods, the shortest that are not too many."""
    if not len(seconds):
        return None, []
    moment = seconds.astype("datetime64[s]")
    for name, unit, size, offset in PERIODS:  # noqa: B007
        key = (moment.astype(f"datetime64[{unit}]").astype(np.int64) + offset) // size
        if key.max() - key.min() < MOST_PERIODS:
            break
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) > 0])
    found = []
    for rows in np.split(order, starts[1:]):
        start = np.array(key[rows[0]] * size - offset).astype(f"datetime64[{unit}]").astype("datetime64[s]")
        median, high = np.quantile(scores[rows], (0.5, 0.95))
        found.append(
            {
                "start": int(start.astype(np.int64)),
                "rows": len(rows),
                "flagged": int(flags[rows].sum()),
                "flag_rate": float(flags[rows].mean()),
                "score_median": float(median),
                "score_q95": float(high),
            }
        )
    return name, found
