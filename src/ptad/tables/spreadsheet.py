"""Reading of one sheet of an Excel workbook or OpenDocument spreadsheet.

A sheet has at most about a million rows and is read as a whole. Formulas are read as their last computed values, cells
with a date format as dates. The first row that is not empty is the header.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

import numpy as np
import pyarrow as pa

from ptad.errors import DataError, Message, needs_extra
from ptad.tables.conversion import objects_to_arrow
from ptad.tables.delimited import NULL_WORDS
from ptad.tables.names import listed
from ptad.tables.places import SHEET, sheet_numbering
from ptad.tables.source import READ_ERRORS, ReadOptions, Source, TableFile, check_names
from ptad.tables.values import EXACT

logger = logging.getLogger("ptad")

CellRows = list[list[Any]]
# The values of missing cells and of errors in formulas.
_MISSING = {*NULL_WORDS, "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"}
SPARSE_CELLS, FEW_FILLED = 1 << 22, 64  # in a larger grid at least one of so many cells must be filled
_REFERENCE = re.compile(r"([A-Za-z]+)([0-9]+)")


def open_sheet(source: Source, options: ReadOptions) -> TableFile:
    """Read the chosen sheet of a workbook; see :func:`read_sheet`."""
    sheet = read_sheet(source)
    options.types.add(sheet.schema)
    return TableFile(
        sheet.column_names, sheet.num_rows, lambda: iter(sheet.to_batches()), sheet_numbering(sheet.schema)
    )


def read_sheet(source: Source) -> pa.Table:
    """Read the chosen sheet of a workbook, or the first one, with a warning if there are others.

    The metadata of the table holds the row of the header and the empty rows (:data:`ptad.tables.places.SHEET`).
    """
    with needs_extra("excel", f"The workbook {source.label}", "python-calamine"):
        import python_calamine
    try:
        with source.open_random() as path, python_calamine.CalamineWorkbook.from_path(str(path)) as book:
            _check_extent(source, path)
            sheet = book.get_sheet_by_name(_chosen_name(source, book.sheet_names))
            rows: CellRows = sheet.to_python(skip_empty_area=True)
            first, left = sheet.start or (0, 0)
            merged = sheet.merged_cell_ranges or []
    except python_calamine.PasswordError as error:
        raise DataError(f"{source.label} is protected by a password. Save a copy without one.") from error
    except (python_calamine.CalamineError, zipfile.BadZipFile, zlib.error, RuntimeError, *READ_ERRORS) as error:
        raise source.damaged(error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of Rust; it is not an Exception
            raise source.damaged(ValueError("its cells make no sheet")) from error
        raise
    label = f"{source.label}, sheet {sheet.name!r}"
    if not rows:
        raise DataError(f"{label} is empty.", "Give a sheet with a header and rows; {sheet} names another one.")
    for (top, start), (bottom, stop) in merged:
        if top <= first <= bottom:
            raise DataError(
                f"{label}: cells {_reference(top, start)}:{_reference(bottom, stop)} of the header are merged. Split "
                "them and write a name for every column; delete a title above the header."
            )
    if first:
        logger.info("%s begins with empty rows: the header is row %d", label, first + 1)
    return _to_table(label, rows, first, left)


def _check_extent(source: Source, path: Path) -> None:
    """Raise if a few cells of an .xlsx are so far apart that the grid between them would fill the memory.

    python-calamine allocates the whole grid of a sheet. The size that a sheet declares may be wrong, and the parts of
    the file can be assigned to sheets in many ways: all parts that are XML are measured.
    """
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as parts:
        for part in parts.namelist():
            extent = _Extent()
            with parts.open(part) as stream:
                try:
                    extent.parser.ParseFile(stream)
                except ExpatError as error:
                    if extent.filled or part.lower().endswith(".xml"):  # python-calamine may read further
                        raise source.damaged(ValueError(f"its part {part!r} is not XML")) from error
            n_cells = extent.rows * extent.columns
            if n_cells > max(SPARSE_CELLS, FEW_FILLED * extent.filled):
                raise DataError(
                    f"{source.label}: the last cell of a sheet is {_reference(extent.rows - 1, extent.columns - 1)}, "
                    f"and of the {n_cells:,} cells up to there only {extent.filled:,} are filled. Delete what lies far "
                    "from the other cells."
                )


class _Extent:
    """The extent of the filled cells of a sheet; a row or a cell without a reference follows the previous one."""

    def __init__(self) -> None:
        self.rows = self.columns = self.filled = self._row = self._column = 0
        self.parser = ParserCreate()
        self.parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == "c":
            self._column += 1
            if (match := _REFERENCE.fullmatch(attributes.get("r", ""))) is not None:
                self._row, self._column = int(match[2][:10]), _column_number(match[1])
        elif tag in ("v", "is", "f"):
            self.filled += 1
            self.rows, self.columns = max(self.rows, self._row), max(self.columns, self._column)
        elif tag == "row":
            number = attributes.get("r", "")
            self._row, self._column = int(number[:10]) if number.isdecimal() else self._row + 1, 0


@cache
def _column_number(letters: str) -> int:
    """The number of a column, counted from 1."""
    number = 0
    for letter in letters[:8].upper():
        number = 26 * number + ord(letter) - 64
    return number


def _chosen_name(source: Source, names: list[str]) -> str:
    """The name of the sheet that was chosen by its name, or by its number from 1."""
    chosen = source.sheet
    if chosen is None:
        if len(names) > 1:
            problem = f"{source.label}: sheet {names[0]!r} is read, not {listed(names[1:])}."
            logger.warning(Message(problem, "Choose with {sheet}."))
        return names[0]
    if chosen in names:
        return chosen
    if chosen.isdecimal() and 1 <= int(chosen) <= len(names):
        return names[int(chosen) - 1]
    known = ", ".join(f"{i} {name!r}" for i, name in enumerate(names[:30], start=1))
    raise DataError(f"{source.label} has no sheet {chosen!r}. Its sheets are: {known}.", "Name one with {sheet}.")


def _to_table(label: str, rows: CellRows, first: int, left: int) -> pa.Table:
    """Convert a grid of cells whose first row, the header, is row ``first``, and whose first column is ``left``."""
    header, *body = rows
    filled = [any(cell != "" for cell in row) for row in body]
    while filled and not filled[-1]:
        filled.pop()
    if n_empty := filled.count(False):
        empty = "1 empty row between others is" if n_empty == 1 else f"{n_empty:,} empty rows between others are"
        logger.warning("%s: %s passed over", label, empty)
    columns = list(zip(*(row for row, is_filled in zip(body, filled, strict=False) if is_filled), strict=True))
    columns = columns or [()] * len(header)
    names = [_header_text(cell) for cell in header]
    unnamed = [
        _reference(first, left + j)
        for j, (name, cells) in enumerate(zip(names, columns, strict=True))
        if not name and any(cell != "" for cell in cells)
    ]
    if unnamed:
        raise DataError(
            f"{label}: the header has no name in {'cell' if len(unnamed) == 1 else 'cells'} "
            f"{listed(unnamed, show=str)}, above a column with values. Write one; delete a title above the header."
        )
    check_names(label, list(filter(None, names)))
    table = pa.table({name: _to_arrow(name, cells) for name, cells in zip(names, columns, strict=True) if name})
    empty_rows = [first + 2 + i for i, is_filled in enumerate(filled) if not is_filled]
    return table.replace_schema_metadata({SHEET: json.dumps([first + 1, empty_rows])})


def _header_text(cell: Any) -> str:
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def _to_arrow(name: str, cells: tuple[Any, ...]) -> pa.Array:
    values = np.empty(len(cells), dtype=object)
    values[:] = [None if isinstance(cell, str) and cell.strip() in _MISSING else cell for cell in cells]
    types = set(map(type, values)) - {type(None)}
    if types == {float}:
        numbers = pa.array(values, pa.float64())
        whole = all(v is None or (v.is_integer() and abs(v) < EXACT) for v in values)
        return numbers.cast(pa.int64()) if whole else numbers  # a sheet has no integers
    if dt.datetime in types and types <= {dt.date, dt.datetime}:  # midnight is read as a date
        values[:] = [
            v if v is None or isinstance(v, dt.datetime) else dt.datetime(v.year, v.month, v.day) for v in values
        ]
    elif len(types) > 1:
        values[:] = [_header_text(v) if isinstance(v, float) else v for v in values]  # 3, not 3.0, beside text
    return objects_to_arrow(name, values)


def _reference(row: int, column: int) -> str:
    """The reference of a cell, such as B3, from its row and column, counted from 0."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"
