"""Cells that cannot be read: they count as missing and are collected; in strict mode the first one is an error."""

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
from numpy.typing import NDArray

from ptad.errors import DataError, Message, Option
from ptad.tables.places import IN_MEMORY, RowError

LONGEST_QUOTED = 60  # characters of a value in a message
LONGEST_VALUE = 1000  # characters of a value in a list


class BadCellsWarning(UserWarning):
    """Some cells of a table could not be read and count as missing."""


class UnreadableCells(DataError):
    """Cells of one column that cannot be read as its type.

    The ``bad`` cells of ``array`` should be ``expected``, such as "a date", written like ``example``.
    """

    def __init__(self, column: str, bad: NDArray[np.bool_], array: pa.Array, expected: str, example: str = "") -> None:
        self.column, self.bad, self.array, self.expected, self.example = column, bad, array, expected, example
        message = self.first_error().message
        super().__init__(message.problem, message.remedy, options=message.options)

    def first_error(self, offset: int = 0) -> RowError:
        """Return the error about the first of these cells; the array begins at row ``offset``."""
        row = int(np.flatnonzero(self.bad)[0])
        cell = BadCell.from_value(offset + row, self.column, self.array[row].as_py(), self.expected)
        return cell.error(self.example)


@dataclass(frozen=True)
class BadCell:
    """One cell that cannot be read."""

    row: int  # counted from 0
    column: str
    value: str
    quoted: str  # the value in a message
    expected: str  # "a number", "a date"

    @classmethod
    def from_value(cls, row: int, column: str, value: Any, expected: str) -> BadCell:
        """Return the cell with this value."""
        return cls(row, column, str(value)[:LONGEST_VALUE], quoted_value(value), expected)

    @property
    def reason(self) -> str:
        """Why the cell cannot be read."""
        return f"not {self.expected}: {self.quoted}"

    def error(self, example: str = "") -> RowError:
        """Return the error about the cell in strict mode; ``example`` is a value that can be read."""
        what = f": {self.quoted} is not {self.expected}{f', such as {example}' if example else ''}."
        remedy = (
            "Correct the value, declare it as missing with {missing}, or turn strict off, so that it counts as missing."
        )
        missing = Option("missing", self.value if len(self.value) <= LONGEST_QUOTED else None)
        return RowError(f"Column {self.column!r}, ", self.row, what, remedy, (missing,))


class BadCells:
    """The cells of a table that cannot be read; a strict collection raises for the first one instead."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._blocks: list[tuple[str, str, NDArray[np.int64], pa.Array]] = []  # column, expected, rows, values
        self.unread: dict[str, Message] = {}  # a warning per column none of whose values can be read

    def add(self, error: UnreadableCells, offset: int = 0) -> None:
        """Add cells of a column whose array begins at row ``offset``."""
        if self.strict:
            raise error.first_error(offset)
        rows = np.flatnonzero(error.bad)
        self._blocks.append((error.column, error.expected, offset + rows, error.array.take(pa.array(rows))))

    def add_all(self, other: BadCells, rows: NDArray[np.int64]) -> None:
        """Add the cells of another collection, whose rows are these rows of the table."""
        self._blocks += [(column, expected, rows[i], values) for column, expected, i, values in other._blocks]

    def __len__(self) -> int:
        return sum(len(rows) for _, _, rows, _ in self._blocks)

    def __iter__(self) -> Iterator[BadCell]:
        """Yield the cells row by row."""
        return iter(self.split([sys.maxsize], len(self))[0][1])

    def split(self, lengths: Sequence[int], most: int) -> list[tuple[int, list[BadCell]]]:
        """Return the number of cells and the first ``most`` of them for each part of the table, given their lengths.

        Rows are counted from the beginning of each part. Only the cells that are returned become objects.
        """
        if not self._blocks:
            return [(0, [])] * len(lengths)
        rows = np.concatenate([rows for _, _, rows, _ in self._blocks])
        block_starts = np.cumsum([0, *(len(rows) for _, _, rows, _ in self._blocks)])
        order = np.argsort(rows, kind="stable")
        first_rows = np.cumsum([0, *lengths])
        bounds = np.searchsorted(rows[order], first_rows)

        def cell(i: int, first_row: int) -> BadCell:
            block = int(np.searchsorted(block_starts, i, side="right")) - 1
            column, expected, _, values = self._blocks[block]
            return BadCell.from_value(
                int(rows[i]) - first_row, column, values[i - int(block_starts[block])].as_py(), expected
            )

        return [
            (stop - start, [cell(i, first_row) for i in order[start : min(stop, start + most)].tolist()])
            for first_row, (start, stop) in zip(first_rows.tolist(), pairwise(bounds.tolist()), strict=False)
        ]

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells per column, in descending order."""
        counts: Counter[str] = Counter()
        for column, _, rows, _ in self._blocks:
            counts[column] += len(rows)
        return dict(counts.most_common())

    def warn(self) -> None:
        """Emit one warning about all cells, if there are any, that points to the line that called ptad."""
        if self._blocks:
            first = next(iter(self))
            text = (
                f"{summary(self.counts)}; the first: column {first.column!r}, {IN_MEMORY.of(first.row)}: {first.reason}"
            )
            text = " ".join([*map(str, self.unread.values()), text])
            warnings.warn(text, BadCellsWarning, stacklevel=levels_to_caller())


def levels_to_caller() -> int:
    """Return the ``stacklevel`` of a warning that points to the line that called ptad."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("ptad", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


def summary(counts: dict[str, int], most: int = 10) -> str:
    """Return how many cells of which columns cannot be read."""
    n = sum(counts.values())
    shown = ", ".join(f"{column!r} ({number:,})" for column, number in list(counts.items())[:most])
    others = len(counts) - most
    more = f" and {others:,} more {'column' if others == 1 else 'columns'}" if others > 0 else ""
    cells = "1 cell cannot be read and counts" if n == 1 else f"{n:,} cells cannot be read and count"
    return f"{cells} as missing: {shown}{more}"


def quoted_value(value: Any) -> str:
    """Return a value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTED else f"{text[: LONGEST_QUOTED - 1]}…"
