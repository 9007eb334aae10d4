"""The results file: a tidy CSV, one row per measured cell, append-only.

Rows are written one at a time under a file lock and flushed to disk, so that an interrupted run loses nothing and two
runs can write to one file. A cell that is measured again gets a second row; the last one counts.
"""

from __future__ import annotations

import csv
import io
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ptad.errors import DataError
from ptad.files import lock

logger = logging.getLogger(__name__)

FORMAT_VERSION = 3

#: The identity of a cell: one with a row of the same key is not measured again.
KEY_COLUMNS = ("experiment", "variant", "method", "dataset", "seed", "scaling", "config_hash")
METRIC_COLUMNS = ("auc_pr", "auc_roc", "auc_pr_at_1", "auc_pr_at_5", "prevalence")
#: Share of normal test rows that a calibrated threshold flags at target rates of 1, 5 and 10 %.
ALARM_COLUMNS = ("false_alarms_1", "false_alarms_5", "false_alarms_10")
COST_COLUMNS = ("fit_seconds", "score_seconds", "peak_rss_mb", "peak_cuda_mb", "n_parameters")
SHAPE_COLUMNS = ("n_train", "n_test", "n_features", "n_anomalies", "max_train", "max_test", "duplicate_share")
COLUMNS = (
    "format_version",
    *KEY_COLUMNS,
    "status",
    "reason",
    *METRIC_COLUMNS,
    *ALARM_COLUMNS,
    *COST_COLUMNS,
    *SHAPE_COLUMNS,
    "device",
    "settings",
    "versions",
    "finished_at",
)
#: Cells with status ok or capped have metrics; the others have a reason.
STATUSES = ("ok", "capped", "failed", "timeout", "skipped")
MEASURED = ("ok", "capped")

Row = dict[str, Any]


@dataclass(frozen=True)
class ResultsFile:
    """A results file on disk."""

    path: Path

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; safe against other writers and after a crash that left a line unfinished."""
        unknown = sorted(set(row) - set(COLUMNS))
        if unknown:
            raise DataError(f"A result row has no column {unknown[0]!r}.")
        full, line = {"format_version": FORMAT_VERSION, **row}, io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([_to_text(full.get(name)) for name in COLUMNS])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            lock(file.fileno(), wait=True)  # released when the file is closed
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                file.write(_header())
            else:
                self._check_header(file)
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.getvalue().encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Row]:
        """Return the last row of every cell, in the order of their first appearance; none if there is no file."""
        if not self.path.exists() or self.path.stat().st_size == 0:
            return []
        latest: dict[tuple[Any, ...], Row] = {}
        with self.path.open("rb") as file:
            self._check_header(file)
            # Line by line: a row cut off inside a quoted field must not swallow the rows after it.
            for number, line in enumerate(file, 2):
                fields = next(csv.reader([line.decode("utf-8", "replace")]), [])
                if len(fields) != len(COLUMNS):
                    logger.warning("%s, line %d is incomplete and left out.", self.path, number)
                    continue
                row = _from_fields(fields, f"{self.path}, line {number}")
                latest[cell_key(row)] = row
        return list(latest.values())

    def read_existing(self) -> list[Row]:
        """Return the rows of a file that must exist."""
        if not self.path.is_file():
            raise DataError(f"There is no results file {str(self.path)!r}. Make one with 'ptad benchmark run'.")
        return self.read()

    def merge(self, other: ResultsFile) -> int:
        """Append the rows of another file, such as another machine's, that take precedence; return their number."""
        rows = {cell_key(row): row for row in self.read()}
        new = [row for row in other.read_existing() if precedence(row) > precedence(rows.get(cell_key(row)))]
        for row in new:
            self.append(row)
        return len(new)

    def _check_header(self, file: io.BufferedIOBase | io.BufferedRandom) -> None:
        """Read the first line, or refuse the file."""
        file.seek(0)
        first = file.readline()
        if first == _header():
            return
        names = first.decode("utf-8", "replace").strip().split(",")
        if "format_version" not in names:
            raise DataError(
                f"{self.path} is not a results file of ptad: its first line has no column 'format_version'."
            )
        raise DataError(
            f"{self.path} was written in another format than version {FORMAT_VERSION} (its columns differ). "
            "Write to a new file, or read this one with the ptad release that wrote it."
        )


class ResultsFolder:
    """A folder such as ``benchmarks/results``: results files of collections, read once, and files of measurements."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = cache(self._rows)

    def _rows(self, collection: str) -> list[Row]:
        """Return the rows of ``NAME.csv`` and ``NAME-*.csv``, which runs on several machines leave."""
        files = [self.path / f"{collection}.csv", *sorted(self.path.glob(f"{collection}-*.csv"))]
        return [row for path in files for row in ResultsFile(path).read()]

    def experiment(self, collection: str, name: str) -> list[Row]:
        """Return the rows of one experiment."""
        return [row for row in self.rows(collection) if row["experiment"] == name]

    def measurement(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a measurement's own file, which may have any columns; none if there is no file."""
        path = self.path / f"{name}.csv"
        if not path.is_file():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def cell_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the identity of the cell of a row."""
    return tuple(int(row[name]) if name == "seed" else str(row[name]) for name in KEY_COLUMNS)


def precedence(row: Row | None) -> tuple[Any, ...]:
    """Return a sort key of which the largest counts: a measured row before a failure before none, then the latest."""
    return () if row is None else (row["status"] in MEASURED, str(row.get("finished_at") or ""))


def _header() -> bytes:
    return (",".join(COLUMNS) + "\n").encode()


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    # Without line breaks: a row is one line, or one that is cut off could not be recognised.
    return " ".join(str(value).split())


def _from_fields(fields: list[str], place: str) -> Row:
    row: Row = dict(zip(COLUMNS, fields, strict=True))
    if row["format_version"] != str(FORMAT_VERSION):
        raise DataError(f"{place}: format version {row['format_version']!r}, this release reads {FORMAT_VERSION}.")
    if row["status"] not in STATUSES:
        raise DataError(f"{place}: unknown status {row['status']!r}. Known: {', '.join(STATUSES)}.")
    try:
        for name in (*METRIC_COLUMNS, *ALARM_COLUMNS, *COST_COLUMNS, "duplicate_share"):
            row[name] = float(row[name]) if row[name] else None
        for name in ("seed", "n_train", "n_test", "n_features", "n_anomalies", "max_train", "max_test"):
            row[name] = int(row[name]) if row[name] else None
    except ValueError as error:
        raise DataError(f"{place}: {error}.") from error
    return row
