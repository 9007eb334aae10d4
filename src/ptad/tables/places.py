"""Where a row is, for whoever looks it up: in a spreadsheet, among records, on a line, in a table in memory.

Code counts rows from 0. An error or a list carries that number and the :class:`Places` of the table; text is made from
both at the border.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ptad.errors import DataError, Option


@dataclass(frozen=True)
class Counting:
    """How people count the rows of a file."""

    first: int  # the number of the first row
    words: str  # what stands around a number
    note: str  # the same for a whole table of numbers
    empty: tuple[int, ...] = ()  # numbers of rows after the first one that hold nothing and are no rows of the table

    @classmethod
    def below_header(cls, header: int, empty: Sequence[int] = ()) -> Counting:
        """Return how the rows of a sheet are counted whose header is in this row, counted from 1."""
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


SPREADSHEET = Counting.below_header(1)
RECORDS = Counting(1, "row {}", "rows are counted from 1")
LINES = Counting(1, "line {}", "rows are numbered by their line in the file")
POSITIONS = Counting(0, "row {} (counted from 0)", "rows are counted from 0")
COUNTINGS = {"csv": SPREADSHEET, "tsv": SPREADSHEET, "excel": SPREADSHEET, "jsonl": LINES}
SHEET = b"ptad.sheet"  # in the metadata of an Arrow table that was a sheet: its header's row, from 1, and empty rows


def counting_of(kind: str, metadata: Mapping[bytes, bytes] | None = None) -> Counting:
    """Return how people count the rows of a file of this format, and of a table that was a sheet once."""
    sheet = (metadata or {}).get(SHEET)
    return COUNTINGS.get(kind, RECORDS) if sheet is None else Counting.below_header(*_sheet(sheet))


def _sheet(blob: bytes) -> tuple[int, list[int]]:
    """Read what a table says of its sheet; a file of somebody else may say anything."""
    try:
        header, empty = json.loads(blob)
        return int(header), [int(row) for row in empty]
    except (ValueError, TypeError):
        return 1, []


@dataclass(frozen=True)
class Place:
    """One row of one file; ``file`` is None where there is only one."""

    file: str | None
    number: int
    counting: Counting

    def __str__(self) -> str:
        where = self.counting.words.format(f"{self.number:,}")
        return where if self.file is None else f"{self.file}, {where}"


@dataclass(frozen=True)
class Places:
    """The places of the rows of a table."""

    # label, number of rows and counting of the files that it is made of, in order; the last takes all further rows
    files: tuple[tuple[str, int, Counting], ...] = (("", 0, POSITIONS),)
    start: int = 0  # row of the whole table that the rows at hand begin with
    # the row of the whole table for each row at hand, if they do not follow each other
    rows: NDArray[np.int64] | None = field(default=None, compare=False)

    def of(self, row: int) -> Place:
        """Return the place of a row at hand."""
        row = self.start + row if self.rows is None else int(self.rows[row])
        begins = [0, *accumulate(n for _, n, _ in self.files[:-1])]
        i = bisect_right(begins, row) - 1
        label, _, counting = self.files[i]
        return Place(label if len(self.files) > 1 else None, counting.number(row - begins[i]), counting)

    def after(self, start: int) -> Places:
        """Return the places of the rows from ``start`` on."""
        return replace(self, start=start, rows=None)

    def picked(self, rows: NDArray[np.int64] | Sequence[int]) -> Places:
        """Return the places of these rows of the whole table."""
        return replace(self, start=0, rows=np.asarray(rows, dtype=np.int64))


IN_MEMORY = Places()


class RowError(DataError):
    """Something is wrong in one row of a table: ``row``, counted from 0 in the rows at hand.

    Its message says ``before``, where the reader finds the row among the ``places``, and ``after``.
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
        super().__init__(f"{before}{places.of(row)}{after}", remedy, options)
        self.args = (before, row, after, remedy, options, places)
        self.row = row

    def at(self, places: Places) -> RowError:
        """Return the error for a reader who finds the rows at these places."""
        before, row, after, remedy, options, _ = self.args
        return RowError(before, row, after, remedy, options, places)


@contextmanager
def located(places: Places) -> Iterator[None]:
    """Errors inside name the rows at these places."""
    try:
        yield
    except RowError as error:
        raise error.at(places) from error
