"""The results file: a tidy CSV, one row per measured cell, only ever appended to.

Rows are written one at a time under a file lock and flushed to disk, so that an interrupted run loses nothing and two
runs may write to one file. A cell that is measured again gets a second row; the last one counts.
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

#: What identifies a cell; a finished cell with the same key is not measured again.
KEY_COLUMNS = ("experiment", "variant", "method", "dataset", "seed", "scaling", "config_hash")
METRIC_COLUMNS = ("auc_pr", "auc_roc", "auc_pr_at_1", "auc_pr_at_5", "prevalence")
#: Share of normal test rows that a calibrated threshold flags at a target rate of 1, 5 and 10 %.
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
#: ok and capped cells have figures; the others have a reason.
STATUSES = ("ok", "capped", "failed", "timeout", "skipped")
MEASURED = ("ok", "capped")

Row = dict[str, Any]


@dataclass(frozen=True)
class ResultStore:
    """A results file on disk."""

    path: Path

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; safe against other writers and against a line that an earlier crash left unfinished."""
        unknown = sorted(set(row) - set(COLUMNS))
        if unknown:
            raise DataError(f"A result row has no column {unknown[0]!r}.")
        line = _to_line({"format_version": FORMAT_VERSION, **row})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            lock(file.fileno(), wait=True)  # until it is closed
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                file.write(_header())
            else:
                self._check_header(file)
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> list[Row]:
        """All rows, numbers as numbers; the last row of every cell only, in the order of their first appearance."""
        if not self.path.exists() or self.path.stat().st_size == 0:  # made, but nothing written yet
            return []
        latest: dict[tuple[Any, ...], Row] = {}
        with self.path.open("rb") as file:
            self._check_header(file)
            # Line by line: a row torn inside a quoted field must not swallow the rows after it.
            for number, line in enumerate(file, 2):
                fields = next(csv.reader([line.decode("utf-8", "replace")]), [])
                if len(fields) != len(COLUMNS):
                    logger.warning("%s, line %d is incomplete and left out.", self.path, number)
                    continue
                row = _from_fields(fields, f"{self.path}, line {number}")
                latest[cell_key(row)] = row
        return list(latest.values())

    def existing(self) -> list[Row]:
        """All rows of a file that must be there."""
        if not self.path.is_file():
            raise DataError(f"There is no results file {str(self.path)!r}. Make one with 'ptad benchmark run'.")
        return self.read()

    def merge(self, other: ResultStore) -> int:
        """Take over the rows of another file, as from another machine; return how many were new.

        A cell that both have keeps the row that was finished last, but a measured row is never replaced by a failure.
        """
        known = {cell_key(row): row for row in self.read()}
        new = [row for row in other.existing() if precedence(row) > precedence(known.get(cell_key(row)))]
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


class Results:
    """What a folder such as ``benchmarks/results`` holds, read once: rows of collections, files of measurements."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = cache(self._rows)

    def _rows(self, collection: str) -> list[Row]:
        """The rows of ``NAME.csv`` and of ``NAME-*.csv``, as runs on several machines leave them."""
        files = [self.folder / f"{collection}.csv", *sorted(self.folder.glob(f"{collection}-*.csv"))]
        return [row for path in files for row in ResultStore(path).read()]

    def experiment(self, collection: str, name: str) -> list[Row]:
        """The rows of one experiment."""
        return [row for row in self.rows(collection) if row["experiment"] == name]

    def measurement(self, name: str) -> list[dict[str, str]]:
        """The file of a measurement that is not made of cells; nothing where there is none."""
        path = self.folder / f"{name}.csv"
        if not path.is_file():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def cell_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What identifies the cell of a row."""
    return tuple(int(row[name]) if name == "seed" else str(row[name]) for name in KEY_COLUMNS)


def precedence(row: Row | None) -> tuple[Any, ...]:
    """Of two rows of a cell the larger one counts: a measured one before a failure before none, the later one."""
    return () if row is None else (row["status"] in MEASURED, str(row.get("finished_at") or ""))


def _header() -> bytes:
    return (",".join(COLUMNS) + "\n").encode()


def _to_line(row: Mapping[str, Any]) -> bytes:
    buffer = io.StringIO()
    values = [_text(row.get(name)) for name in COLUMNS]
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue().encode("utf-8")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    # One row is one line, or a crash inside a row could not be told from its end.
    return " ".join(str(value).split())


def _from_fields(fields: list[str], where: str) -> Row:
    row: Row = dict(zip(COLUMNS, fields, strict=True))
    if row["format_version"] != str(FORMAT_VERSION):
        raise DataError(f"{where}: format version {row['format_version']!r}, this release reads {FORMAT_VERSION}.")
    if row["status"] not in STATUSES:
        raise DataError(f"{where}: unknown status {row['status']!r}. Known: {', '.join(STATUSES)}.")
    try:
        for name in (*METRIC_COLUMNS, *ALARM_COLUMNS, *COST_COLUMNS, "duplicate_share"):
            row[name] = float(row[name]) if row[name] else None
        for name in ("seed", "n_train", "n_test", "n_features", "n_anomalies", "max_train", "max_test"):
            row[name] = int(row[name]) if row[name] else None
    except ValueError as error:
        raise DataError(f"{where}: {error}.") from error
    return row
