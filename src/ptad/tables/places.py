"""Where a row is, for whoever looks it up: in a spreadsheet, among records, on a line, in a table in memory.

Code counts rows from 0. An error or a list carries that number and the :class:`Places` of the table; text is made from
both at the border.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ptad.errors import DataError


@dataclass(frozen=True)
class Counting:
    """How people count the rows of a file: the number of the first one, and the words around a number."""

    first: int
    words: str


SPREADSHEET = Counting(2, "row {} (the header is row 1)")
RECORDS = Counting(1, "row {}")
LINES = Counting(1, "line {}")
POSITIONS = Counting(0, "row {} (counted from 0)")
COUNTINGS = {"csv": SPREADSHEET, "tsv": SPREADSHEET, "xlsx": SPREADSHEET, "ods": SPREADSHEET, "jsonl": LINES}


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
    """The places of the rows of a table.

    Attributes
    ----------
    files : tuple of (label, number of rows, counting)
        The files that the table is made of, in order; the last one takes all further rows.
    start : int
        Row of the whole table that the rows at hand begin with.
    rows : ndarray, optional
        The row of the whole table for each row at hand, if they do not follow each other.
    """

    files: tuple[tuple[str, int, Counting], ...] = (("", 0, POSITIONS),)
    start: int = 0
    rows: NDArray[np.int64] | None = field(default=None, compare=False)

    def of(self, row: int) -> Place:
        """Return the place of a row at hand."""
        row = self.start + row if self.rows is None else int(self.rows[row])
        begins = [0, *accumulate(n for _, n, _ in self.files[:-1])]
        i = bisect_right(begins, row) - 1
        label, _, counting = self.files[i]
        return Place(label if len(self.files) > 1 else None, row - begins[i] + counting.first, counting)

    def after(self, start: int) -> Places:
        """Return the places of the rows from ``start`` on."""
        return replace(self, start=start, rows=None)

    def picked(self, rows: NDArray[np.int64] | Sequence[int]) -> Places:
        """Return the places of these rows of the whole table."""
        return replace(self, start=0, rows=np.asarray(rows, dtype=np.int64))


IN_MEMORY = Places()


class RowError(DataError):
    """Something is wrong in one row of a table.

    Attributes
    ----------
    row : int
        The row, counted from 0 in the rows at hand.
    before, after : str
        What the message says before and after the place.
    """

    def __init__(self, before: str, row: int, after: str, places: Places = IN_MEMORY) -> None:
        super().__init__(f"{before}{places.of(row)}{after}")
        self.before, self.row, self.after = before, row, after

    def at(self, places: Places) -> RowError:
        """Return the error for a reader who finds the rows at these places."""
        return RowError(self.before, self.row, self.after, places)


@contextmanager
def located(places: Places) -> Iterator[None]:
    """Errors inside name the rows at these places."""
    try:
        yield
    except RowError as error:
        raise error.at(places) from error
