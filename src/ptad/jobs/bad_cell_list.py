"""The cells of a table that cannot be read, listed in a CSV file: row, column, value, reason."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ptad.errors import DataError, SettingError
from ptad.files import NewFile, OutputLock, output_file, write_errors
from ptad.tables.bad_cells import BadCell
from ptad.tables.places import Places

COLUMNS = ("row", "column", "value", "reason")


class BadCellList:
    """Writes cells to a CSV file, or does nothing without one; made by :func:`bad_cell_list`."""

    def __init__(self, places: Places, file: Any = None, name: str = "") -> None:
        self._places, self._has_file_column, self._name = places, len(places.files) > 1, name
        self._writer = None if file is None else csv.writer(file)
        self._write_row((*COLUMNS, "file"))

    def add(self, cells: Iterable[BadCell], start: int = 0, places: Places | None = None) -> None:
        """List cells of a batch that begins at row ``start`` of the table, or whose rows are at these places."""
        if self._writer is None:
            return
        places = places or self._places.after(start)
        for cell in cells:
            place = places.of(cell.row)
            self._write_row((place.number, cell.column, cell.value, cell.reason, place.file))

    def _write_row(self, values: tuple[Any, ...]) -> None:
        if self._writer is not None:
            with write_errors(self._name, DataError):
                self._writer.writerow(values if self._has_file_column else values[:-1])


def check_list(path: Path | None, places: Places, out: Any = None) -> None:
    """Refuse a list that would replace the table, the output ``out`` or something that is not a file."""
    if path is None:
        return
    output_file(path, SettingError)
    others = {} if out is None else {os.path.realpath(out): "the output"}
    others |= {os.path.realpath(label): "the table" for label, _, _ in places.files if label}
    if other := others.get(os.path.realpath(path)):
        raise SettingError(f"The list of bad cells, {path}, is {other} itself. Name another file to write to.")


@contextmanager
def bad_cell_list(path: Path | None, places: Places, out: Any = None) -> Iterator[BadCellList]:
    """Yield a list in the file ``path``, which appears when it is complete; without a path nothing is listed.

    Rows are numbered as people count them in the file; a table of several files has one more column, ``file``. A list
    in place of the table or of the output ``out`` is refused.
    """
    if path is None:
        yield BadCellList(places)
        return
    check_list(path, places, out)
    target, name = output_file(path, SettingError), f"The list of bad cells, {path},"
    new = NewFile(target)
    with write_errors(name, DataError):
        lock = OutputLock(target)
    with lock:  # only errors of the list itself are reported as such, not those of the job
        try:
            with write_errors(name, DataError):
                file = new.temporary.open("w", encoding="utf-8", errors="replace", newline="")
            try:
                yield BadCellList(places, file, name)
                with write_errors(name, DataError):
                    file.flush()
            finally:
                with suppress(OSError):  # the disk is full, which was reported
                    file.close()
            with write_errors(name, DataError):
                new.finish()
        finally:
            new.discard()
