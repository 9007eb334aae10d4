"""Cells that cannot be read: they count as missing, are counted and listed; in strict mode the first one is refused."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptad.errors import DataError, Message, Option
from ptad.tables.places import IN_MEMORY, Places, RowError

LONGEST_VALUE = 60  # characters of a value that a reason quotes
LONGEST_KEPT = 1000  # and that a list keeps


class BadCellsWarning(UserWarning):
    """Some cells of a table could not be read and count as missing."""


class UnreadableCells(DataError):
    """Cells of one column that are not what the column holds; raised by whatever reads a column.

    Those of ``array`` that are ``bad`` should be ``what``, such as "a date", written like the example ``form``.
    """

    def __init__(self, column: str, bad: NDArray[np.bool_], array: pa.Array, what: str, form: str = "") -> None:
        self.column, self.bad, self.array, self.what, self.form = column, bad, array, what, form
        message = self.first().message
        super().__init__(message.problem, message.remedy, message.options)

    def first(self, offset: int = 0) -> RowError:
        """Return the error about the first of these cells, which begin at row ``offset``."""
        row = int(np.flatnonzero(self.bad)[0])
        return BadCell.of(offset + row, self.column, self.array[row].as_py(), self.what).refusal(self.form)

    def without(self) -> pa.Array:
        """Return the cells with nulls in place of those that cannot be read."""
        return pc.if_else(pa.array(self.bad), pa.scalar(None, self.array.type), self.array)


@dataclass(frozen=True)
class BadCell:
    """One cell that could not be read."""

    row: int  # counted from 0
    column: str
    value: str
    shown: str  # the value as a message shows it
    what: str  # it should be: "a number", "a date"

    @classmethod
    def of(cls, row: int, column: str, value: Any, what: str) -> BadCell:
        """Return the cell that holds ``value``."""
        return cls(row, column, str(value)[:LONGEST_KEPT], shown_value(value), what)

    @property
    def reason(self) -> str:
        """Why it cannot be read."""
        return f"not {self.what}: {self.shown}"

    def refusal(self, form: str = "") -> RowError:
        """Return the error that refuses it; ``form`` is an example of what can be read."""
        return RowError(
            f"Column {self.column!r}, ",
            self.row,
            f": {self.shown} is not {self.what}{f', such as {form}' if form else ''}.",
            "Correct the value, name it as a missing one with {}, or leave strict off: it then counts as missing.",
            (Option("missing", self.value if len(self.value) <= LONGEST_VALUE else None),),
        )


class BadCells:
    """Collects the cells of a table that cannot be read; if it is strict, the first one is an error instead."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._found: list[tuple[str, str, NDArray[np.int64], pa.Array]] = []
        self.unread: dict[str, Message] = {}  # columns none of whose values can be read

    def add(self, error: UnreadableCells, offset: int = 0) -> None:
        """Take in cells of a column that begin at row ``offset``."""
        if self.strict:
            raise error.first(offset)
        rows = np.flatnonzero(error.bad)
        self._found.append((error.column, error.what, offset + rows, error.array.take(pa.array(rows))))

    def add_all(self, other: BadCells, rows: NDArray[np.int64]) -> None:
        """Take in what another collection found in these rows."""
        self._found += [(column, what, rows[places], values) for column, what, places, values in other._found]

    def __len__(self) -> int:
        return sum(len(rows) for _, _, rows, _ in self._found)

    def __iter__(self) -> Iterator[BadCell]:
        """Yield the cells row by row."""
        return iter(self.of_parts([sys.maxsize], len(self))[0][1])

    def of_parts(self, lengths: Sequence[int], most: int) -> list[tuple[int, list[BadCell]]]:
        """For parts of the table of these lengths, the number of such cells and the first ``most`` by their rows there.

        However many cells there are, only those that are returned become objects.
        """
        if not self._found:
            return [(0, [])] * len(lengths)
        rows = np.concatenate([rows for _, _, rows, _ in self._found])
        begins = np.cumsum([0, *(len(rows) for _, _, rows, _ in self._found)])  # of each entry, in those rows
        order = np.argsort(rows, kind="stable")
        first_rows = np.cumsum([0, *lengths])
        bounds = np.searchsorted(rows[order], first_rows)

        def cell(place: int, first_row: int) -> BadCell:
            i = int(np.searchsorted(begins, place, side="right")) - 1
            column, what, _, values = self._found[i]
            return BadCell.of(int(rows[place]) - first_row, column, values[place - int(begins[i])].as_py(), what)

        return [
            (stop - start, [cell(place, first_row) for place in order[start : min(stop, start + most)].tolist()])
            for first_row, (start, stop) in zip(first_rows.tolist(), pairwise(bounds.tolist()), strict=False)
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells of each column could not be read, the most first."""
        found: Counter[str] = Counter()
        for column, _, rows, _ in self._found:
            found[column] += len(rows)
        return dict(found.most_common())

    def warn(self) -> None:
        """Emit one warning about all of them, if there are any; it points to the caller's own line."""
        if self._found:
            text = f"{summary(self.counts)}; the first: {described(next(iter(self)))}"
            text = " ".join([*map(str, self.unread.values()), text])
            warnings.warn(text, BadCellsWarning, stacklevel=levels_to_caller())


def levels_to_caller() -> int:
    """Return the ``stacklevel`` of a warning that points to the line that called ptad."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("ptad", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


def described(cell: BadCell, places: Places = IN_MEMORY) -> str:
    """Return column, place and reason of a cell in words."""
    return f"column {cell.column!r}, {places.of(cell.row)}: {cell.reason}"


def summary(counts: dict[str, int], most: int = 10) -> str:
    """Return how many cells of which columns could not be read, in words."""
    n = sum(counts.values())
    shown = ", ".join(f"{column!r} ({number:,})" for column, number in list(counts.items())[:most])
    others = len(counts) - most
    more = f" and {others:,} more {'column' if others == 1 else 'columns'}" if others > 0 else ""
    cells = "1 cell cannot be read and counts" if n == 1 else f"{n:,} cells cannot be read and count"
    return f"{cells} as missing: {shown}{more}"


def shown_value(value: Any) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
