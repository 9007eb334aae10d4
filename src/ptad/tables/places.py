"""Places of rows as people look them up: in a spreadsheet, among records, on a line, in a table in memory.

Code counts rows from 0. An error or a list holds that number and the :class:`Places` of the table; interfaces format
both as text.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError, Option


@dataclass(frozen=True)
class RowNumbering:
    """How the rows of a file are numbered."""

    first: int  # the number of the first row
    words: str  # the text around a number
    note: str  # the explanation of a column of numbers
    empty: tuple[int, ...] = ()  # numbers of empty rows after the first one, which are not rows of the table

    @classmethod
    def below_header(cls, header: int, empty: Sequence[int] = ()) -> RowNumbering:
        """Return the numbering of a sheet whose header is in this row, counted from 1."""
        return cls(
            header + 1,
            f"row {{}} (the header is row {header})",
            f"rows are numbered as in the file (the header is row {header})",
            tuple(empty),
        )

    def number(self, row: int) -> int:
        """Return the number of a row of the table, counted from 0."""
        number = self.first + row
        for empty in self.empty:
            if empty > number:
                break
            number += 1
        return number


SPREADSHEET = RowNumbering.below_header(1)
RECORDS = RowNumbering(1, "row {}", "rows are counted from 1")
LINES = RowNumbering(1, "line {}", "rows are numbered by their line in the file")
POSITIONS = RowNumbering(0, "row {} (counted from 0)", "rows are counted from 0")
SHEET = b"ptad.sheet"  # metadata of an Arrow table read from a sheet: the row of its header, from 1, and its empty rows


def sheet_numbering(schema: pa.Schema) -> RowNumbering:
    """Return the numbering of an Arrow table: as in the sheet that it was read from, or that of records."""
    sheet = (schema.metadata or {}).get(SHEET)
    if sheet is None:
        return RECORDS
    try:
        header, empty = json.loads(sheet)
        return RowNumbering.below_header(int(header), [int(row) for row in empty])
    except (ValueError, TypeError):  # a file of another program may hold anything
        return SPREADSHEET


@dataclass(frozen=True)
class Place:
    """One row of one file; ``file`` is None where there is only one."""

    file: str | None
    number: int
    numbering: RowNumbering

    def __str__(self) -> str:
        row = self.numbering.words.format(f"{self.number:,}")
        return row if self.file is None else f"{self.file}, {row}"


@dataclass(frozen=True)
class Places:
    """The places of the rows of a table."""

    # label, number of rows and numbering of each file, in order; all further rows are in the last one
    files: tuple[tuple[str, int, RowNumbering], ...] = (("", 0, POSITIONS),)
    start: int = 0  # the row of the whole table that the current rows begin with
    # the row of the whole table for each of the current rows, if they are not consecutive
    rows: NDArray[np.int64] | None = field(default=None, compare=False)

    def of(self, row: int) -> Place:
        """Return the place of one of the current rows."""
        row = self.start + row if self.rows is None else int(self.rows[row])
        starts = [0, *accumulate(n for _, n, _ in self.files[:-1])]
        i = bisect_right(starts, row) - 1
        label, _, numbering = self.files[i]
        return Place(label if len(self.files) > 1 else None, numbering.number(row - starts[i]), numbering)

    def after(self, start: int) -> Places:
        """Return the places of the rows from ``start`` on."""
        return replace(self, start=start, rows=None)

    def picked(self, rows: NDArray[np.int64] | Sequence[int]) -> Places:
        """Return the places of these rows of the whole table."""
        return replace(self, start=0, rows=np.asarray(rows, dtype=np.int64))


IN_MEMORY = Places()


class RowError(DataError):
    """An error in one row of a table: ``row``, counted from 0 in the current rows.

    Its message is ``before``, the place of the row, and ``after``.
    """

    def __init__(
        self,
        before: str,
        row: int,
        after: str,
        remedy: str = "",
        options: tuple[Option, ...] = (),
        places: Places = IN_MEMORY,
    ) -> None:
        super().__init__(f"{before}{places.of(row)}{after}", remedy, options=options)
        self.args = (before, row, after, remedy, options, places)
        self.row = row

    def at(self, places: Places) -> RowError:
        """Return the error with the place of the row among these."""
        before, row, after, remedy, options, _ = self.args
        return RowError(before, row, after, remedy, options, places)


@contextmanager
def located(places: Places) -> Iterator[None]:
    """Add these places to errors about rows."""
    try:
        yield
    except RowError as error:
        raise error.at(places) from error
