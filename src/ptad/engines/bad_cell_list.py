"""The cells of a table that cannot be read, listed in a CSV file: row, column, value, reason."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptad.errors import DataError, SettingError
from ptad.tables.bad_cells import BadCell, BadCells
from ptad.tables.places import Places

COLUMNS = ("row", "column", "value", "reason")
LIST = b"ptad.bad_cells"  # where the result of a batch carries its list, in the metadata of its schema


class BadCellList:
    """Writes cells to a file, or nowhere; made by :func:`bad_cell_list`."""

    def __init__(self, places: Places, file: Any = None) -> None:
        self._places, self._several = places, len(places.files) > 1
        self._writer = None if file is None else csv.writer(file)
        self._row((*COLUMNS, "file"))

    def add(self, cells: Iterable[BadCell], start: int = 0, places: Places | None = None) -> None:
        """List cells of a batch that begins at row ``start`` of the table, or whose rows are at these places."""
        if self._writer is None:
            return
        places = places or self._places.after(start)
        for cell in cells:
            place = places.of(cell.row)
            self._row((place.number, cell.column, cell.value, cell.reason, place.file))

    def _row(self, cells: tuple[Any, ...]) -> None:
        if self._writer is not None:
            self._writer.writerow(cells if self._several else cells[:-1])


@contextmanager
def bad_cell_list(path: Path | None, places: Places) -> Iterator[BadCellList]:
    """A list in the file ``path``, which is there when it is complete; without a path nothing is listed.

    Rows are numbered as people count them in the file; a table of several files has one more column, ``file``.
    """
    if path is None:
        yield BadCellList(places)
        return
    if str(path).startswith("/dev/") or (path.exists() and not path.resolve().is_file()):
        # a file takes the place of what is there: a folder or a device such as /dev/stdout must stay what it is
        raise SettingError(f"--bad-cells {path} is not a file. Name a CSV file to write to.")
    path = path.resolve()  # of a link, what it points to is replaced
    temporary = path.with_name(f".{path.name}.part")  # of a run that was killed, the next one writes over it
    try:
        with temporary.open("w", encoding="utf-8", errors="replace", newline="") as file:
            yield BadCellList(places, file)
        temporary.replace(path)
    except OSError as error:
        if error.filename is None or str(temporary) not in str(error.filename):
            raise
        raise DataError(
            f"--bad-cells {path} cannot be written: {error.strerror}. Check the folder and its permissions."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def to_bytes(bad: BadCells) -> bytes:
    """Return the cells in a compact form, to be kept beside the scores of a batch."""
    return json.dumps([[c.row, c.column, c.value, c.shown, c.what] for c in bad]).encode()


def from_bytes(blob: bytes) -> list[BadCell]:
    """Read back what :func:`to_bytes` wrote."""
    return [BadCell(*cell) for cell in json.loads(blob)]
