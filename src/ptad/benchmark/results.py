"""A folder of results, read once: the rows of every collection, and the plain files of single measurements."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from ptad.benchmark.store import ResultStore, Row


class Results:
    """What a folder such as ``benchmarks/results`` holds."""

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
