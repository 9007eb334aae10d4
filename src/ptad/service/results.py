"""Scores over time of a scored table, and comparisons of two scorings and of two models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ptad.arrays import Mask, Matrix
from ptad.calibration import Calibration
from ptad.config import Config
from ptad.errors import DataError
from ptad.jobs.score import added_schema
from ptad.report.over_time import TimeColumn, TimeTally
from ptad.report.score_histogram import ScoreScale
from ptad.service.jobs.table_scores import N_REASONS, PREFIX
from ptad.service.problems import Problem
from ptad.tables import BadCells, fit_schema
from ptad.tables.inference import infer_readings

PROFILE_ROWS = 2000  # of a text column, to find out whether it holds dates
BATCH_ROWS = 65536
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
MOST_POINTS = 2000  # of the scatter of scores
MOST_CHANGED = 200  # rows with another flag that are listed
MODEL_FIELDS = (  # that are compared
    *("id", "name", "version", "created", "made_by", "table", "false_alarm_rate", "threshold", "training_rows"),
    *("new_rows", "calibration_rows", "reference_rows", "preset"),
)

StoredScores = tuple[Matrix, Matrix, Mask]


@dataclass(frozen=True)
class ScoredFile:
    """A scored table in the store; its added columns come last, prefixed if the table had their names."""

    path: Path
    schema: pa.Schema

    @classmethod
    def open(cls, path: Path) -> ScoredFile:
        """Open a file; only its header is read."""
        return cls(path, pq.read_schema(path))

    @property
    def columns(self) -> list[str]:
        """The columns of the table that was scored."""
        return list(self.schema.names[: -len(added_schema(N_REASONS))])

    @property
    def prefix(self) -> str:
        """The prefix of the added columns."""
        return PREFIX if self.schema.names[len(self.columns)] == f"{PREFIX}score" else ""

    def head(self, name: str, rows: int) -> pa.Array:
        """Return the first cells of a column."""
        with pq.ParquetFile(self.path) as file:
            first = next(file.iter_batches(batch_size=rows, columns=[name], use_threads=False), None)
        return pa.nulls(0, self.schema.field(name).type) if first is None else first.column(0)

    def scores(self) -> StoredScores:
        """Return scores, p-values and flags of all rows."""
        names = [self.prefix + name for name in added_schema(0).names]
        table = pq.read_table(self.path, columns=names)
        score, p_value, flag = (table.column(name).to_numpy() for name in names)
        return score, p_value, flag.astype(bool)


def _is_date(name: str, file: ScoredFile) -> bool:
    """Return whether a column holds dates, by its type or by the text in its first rows."""
    kind = file.schema.field(name).type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    try:
        readings, _ = infer_readings({name: file.head(name, PROFILE_ROWS)}, {})
        return readings[name].type in ("date", "datetime")
    except (DataError, pa.ArrowException):
        return False


def timeline(file: ScoredFile, content: dict[str, Any], column: str | None) -> dict[str, Any]:
    """Return scores over time as the report has them, and ``columns``, the date columns to choose from.

    Without a ``column`` it is that of the report, ``content``, or else the first one.
    """
    columns = [name for name in file.columns if _is_date(name, file)]
    if column is not None and column not in columns:
        known = f"Its date columns are: {', '.join(map(repr, columns[:30]))}" if columns else "It has no date column"
        raise Problem(400, f"The scored table has no date column {column!r}. {known}.")
    if not columns:
        return {"column": None, "columns": [], "buckets": []}
    scores, default = content["scores"], (content["over_time"] or {}).get("column")
    name = column or (default if default in columns else columns[0])
    head = file.head(name, PROFILE_ROWS)
    tally = TimeTally(name, float(scores["threshold"]), ScoreScale(*scores["scale"]))
    if len(head) < 2:  # one row is no period
        return {**tally.content(), "columns": columns}
    # without the warning about bad cells, which quotes one: no value of a table gets into the log
    reader = TimeColumn(fit_schema(pa.table({name: head}), types={name: "datetime"}, bad=BadCells()), name)
    score = f"{file.prefix}score"
    with pq.ParquetFile(file.path) as parquet:
        for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=[name, score], use_threads=False):
            tally.add(*reader.read(batch), batch.column(score).to_numpy())
    return {**tally.content(), "columns": columns}


def compare_scorings(
    first: ScoredFile, second: ScoredFile, *, same_table: bool, counting: dict[str, Any]
) -> dict[str, Any]:
    """Compare two scorings: quantiles of both and, for the same table, flags and scores row by row.

    ``counting`` tells how the rows of the table are numbered: ``first``, the number of the first one, and a ``note``.
    """
    a, b = first.scores(), second.scores()
    return {
        "same_table": same_table,
        "levels": list(LEVELS),
        "first": _distribution(a[0], a[2]),
        "second": _distribution(b[0], b[2]),
        **({"counting": counting, **_compare_rows(a, b, counting["first"])} if same_table else {}),
    }


def _distribution(scores: Matrix, flags: Mask) -> dict[str, Any]:
    return {
        "rows": len(scores),
        "flagged": int(flags.sum()),
        "flag_rate": float(flags.mean()),
        "quantiles": [float(q) for q in np.quantile(scores, LEVELS)],
    }


def _compare_rows(a: StoredScores, b: StoredScores, first_number: int) -> dict[str, Any]:
    """Compare flags and scores of the same rows."""
    gained, lost = np.flatnonzero(~a[2] & b[2]), np.flatnonzero(a[2] & ~b[2])
    changed = np.concatenate([gained, lost])
    # the clearest changes first: those of rows whose p-values differ most
    difference = np.abs(np.log(a[1][changed]) - np.log(b[1][changed]))
    listed = changed[np.argsort(-difference, kind="stable")[:MOST_CHANGED]]
    plotted = np.unique(np.concatenate([_sample(len(a[0]), MOST_POINTS - len(listed)), listed]))
    return {
        "flags": {
            "both": int((a[2] & b[2]).sum()),
            "first_only": len(lost),
            "second_only": len(gained),
            "neither": int((~a[2] & ~b[2]).sum()),
        },
        "rank_correlation": _rank_correlation(a[0], b[0]),
        "changed": [
            {"row": int(i), "number": first_number + int(i), "first": _row(a, i), "second": _row(b, i)} for i in listed
        ],
        "points": [[int(i), float(a[0][i]), float(b[0][i])] for i in plotted],
    }


def _row(scores: StoredScores, i: int) -> dict[str, Any]:
    return {"score": float(scores[0][i]), "p_value": float(scores[1][i]), "flagged": bool(scores[2][i])}


def _sample(n: int, most: int) -> NDArray[np.int64]:
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _rank_correlation(a: Matrix, b: Matrix) -> float | None:
    """Return Spearman's rank correlation, of a sample if there are very many rows; None if one side is constant."""
    from scipy.stats import spearmanr

    rows = _sample(len(a), 200_000)
    if len(rows) < 3 or np.ptp(a[rows]) == 0 or np.ptp(b[rows]) == 0:
        return None
    return float(spearmanr(a[rows], b[rows]).statistic)


def compare_models(
    first: dict[str, Any], second: dict[str, Any], calibrations: Sequence[Calibration | None]
) -> dict[str, Any]:
    """Compare two models by their descriptions and the scores of their calibration rows."""
    types = [{c["name"]: c["type"] for c in model["columns"]} for model in (first, second)]
    settings = [Config.from_json(model["config"]).by_name() for model in (first, second)]
    sides = [
        {name: model.get(name) for name in MODEL_FIELDS}
        | {"columns": len(model["columns"])}
        | {"quantiles": None if known is None else [float(q) for q in np.quantile(known.scores, LEVELS)]}
        for model, known in zip((first, second), calibrations, strict=True)
    ]
    return {
        "first": sides[0],
        "second": sides[1],
        "levels": list(LEVELS),
        "columns": {
            "first_only": sorted(types[0].keys() - types[1].keys()),
            "second_only": sorted(types[1].keys() - types[0].keys()),
            "types": [
                [name, types[0][name], types[1][name]]
                for name in types[0]
                if name in types[1] and types[0][name] != types[1][name]
            ],
        },
        "settings": [
            [name, settings[0].get(name), settings[1].get(name)]
            for name in sorted({*settings[0], *settings[1]})
            if settings[0].get(name) != settings[1].get(name)
        ],
    }
