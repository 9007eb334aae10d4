"""Excel workbooks and OpenDocument spreadsheets: one sheet as a table.

A sheet has at most about a million rows and is read as a whole. Formulas count by their last computed value, cells with
a date format as dates. The first row that is not empty is the header.
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

from ptad.errors import DataError, Message, MissingExtraError, Option
from ptad.tables.conversion import arrow_of_objects
from ptad.tables.delimited import NULL_WORDS
from ptad.tables.places import SHEET
from ptad.tables.sources import DAMAGE, Source, check_names

logger = logging.getLogger("ptad")

Rows = list[list[Any]]
# What an empty, failed or unknown cell holds, beside the words that mean "missing" in CSV files.
_NOTHING = {*NULL_WORDS, "#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"}
_SHOWN = 10
_EXACT = 2.0**53
SPARSE_CELLS, FEW_FILLED = 1 << 22, 64  # a grid that is larger must have at least one filled cell among so many
_PLACE = re.compile(r"([A-Za-z]+)([0-9]+)")


def read_sheet(source: Source) -> pa.Table:
    """Read the chosen sheet of a workbook, or the first one with a word about the others.

    The metadata of its schema says which rows of the sheet the header and the empty rows are.
    """
    try:
        import python_calamine
    except ImportError as error:
        raise MissingExtraError("python-calamine", "excel", f"The workbook {source.label}") from error
    try:
        with source.open_random() as path, python_calamine.CalamineWorkbook.from_path(str(path)) as book:
            _check_extent(source, path)
            sheet = book.get_sheet_by_name(_chosen(source, book.sheet_names))
            rows: Rows = sheet.to_python(skip_empty_area=True)
            first, left = sheet.start or (0, 0)
            merged = sheet.merged_cell_ranges or []
    except python_calamine.PasswordError as error:
        raise DataError(f"{source.label} is protected by a password. Save a copy without one.") from error
    except (python_calamine.CalamineError, zipfile.BadZipFile, zlib.error, RuntimeError, *DAMAGE) as error:
        raise source.damaged(error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of the reader's own language; it is no Exception
            raise source.damaged(ValueError("its cells make no sheet")) from error
        raise
    where = f"{source.label}, sheet {sheet.name!r}"
    if not rows:
        raise DataError(
            f"{where} is empty.", "Give a sheet with a header and rows; {} names another one.", (Option("sheet"),)
        )
    for (top, start), (bottom, stop) in merged:
        if top <= first <= bottom:
            raise DataError(
                f"{where}: cells {_reference(top, start)}:{_reference(bottom, stop)} of the header are merged. Split "
                "them and write a name for every column; delete a title above the header."
            )
    if first:
        logger.info("%s begins with empty rows: the header is row %d", where, first + 1)
    return _table(where, rows, first, left)


def _check_extent(source: Source, path: Path) -> None:
    """Raise if a few cells of an .xlsx lie so far apart that the grid between them would fill the memory.

    The reader makes the whole grid of a sheet. What a sheet says about its own size may be wrong, and which part of the
    file is which sheet may be said in many ways: all parts that are XML are looked at.
    """
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as parts:
        for part in parts.namelist():
            found = _Extent()
            with parts.open(part) as stream:
                try:
                    found.parser.ParseFile(stream)
                except ExpatError as error:
                    if found.filled or part.lower().endswith(".xml"):  # another reader may go on where this one stops
                        raise source.damaged(ValueError(f"its part {part!r} is not XML")) from error
            if found.rows * found.columns > max(SPARSE_CELLS, FEW_FILLED * found.filled):
                raise DataError(
                    f"{source.label}: the last cell of a sheet is {_reference(found.rows - 1, found.columns - 1)}, and "
                    f"of the {found.rows * found.columns:,} cells up to there only {found.filled:,} are filled. Delete "
                    "what lies far from the other cells."
                )


class _Extent:
    """How far the filled cells of a sheet reach; a row or a cell that does not say its place follows the one before."""

    def __init__(self) -> None:
        self.rows = self.columns = self.filled = self._row = self._column = 0
        self.parser = ParserCreate()
        self.parser.StartElementHandler = self._start

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == "c":
            self._column += 1
            if (found := _PLACE.fullmatch(attributes.get("r", ""))) is not None:
                self._row, self._column = int(found[2][:10]), _number(found[1])
        elif tag in ("v", "is", "f"):
            self.filled += 1
            self.rows, self.columns = max(self.rows, self._row), max(self.columns, self._column)
        elif tag == "row":
            place = attributes.get("r", "")
            self._row, self._column = int(place[:10]) if place.isdecimal() else self._row + 1, 0


@cache
def _number(letters: str) -> int:
    """The number of a column, counted from 1."""
    number = 0
    for letter in letters[:8].upper():
        number = 26 * number + ord(letter) - 64
    return number


def _chosen(source: Source, names: list[str]) -> str:
    """The name of the sheet: by name, or by number from 1."""
    wanted = source.sheet
    if wanted is None:
        if len(names) > 1:
            others = ", ".join(map(repr, names[1 : _SHOWN + 1])) + (" and more" if len(names) > _SHOWN + 1 else "")
            logger.warning(
                Message(
                    f"{source.label}: sheet {names[0]!r} is read, not {others}.", "Choose with {}.", (Option("sheet"),)
                )
            )
        return names[0]
    if wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    listed = ", ".join(f"{i} {name!r}" for i, name in enumerate(names[:30], start=1))
    raise DataError(
        f"{source.label} has no sheet {wanted!r}. Its sheets are: {listed}.", "Name one with {}.", (Option("sheet"),)
    )


def _table(where: str, rows: Rows, first: int, left: int) -> pa.Table:
    header, *body = rows
    filled = [any(cell != "" for cell in row) for row in body]
    while filled and not filled[-1]:
        filled.pop()
    gaps = filled.count(False)
    if gaps:
        what = "1 empty row between others is" if gaps == 1 else f"{gaps:,} empty rows between others are"
        logger.warning("%s: %s passed over", where, what)
    columns = list(zip(*(row for row, full in zip(body, filled, strict=False) if full), strict=True))
    columns = columns or [()] * len(header)
    kept = {}
    unnamed = []
    names = [_name(cell) for cell in header]
    for j, (name, cells) in enumerate(zip(names, columns, strict=True)):
        if name:
            kept[name] = cells
        elif any(cell != "" for cell in cells):
            unnamed.append(_reference(first, left + j))
    if unnamed:
        raise DataError(
            f"{where}: the header has no name in {'cell' if len(unnamed) == 1 else 'cells'} "
            f"{', '.join(unnamed[:_SHOWN])}, above a column with values. Write one; delete a title above the header."
        )
    check_names(where, list(filter(None, names)))
    table = pa.table({name: _column(name, cells) for name, cells in kept.items()})
    empty = [first + 2 + i for i, full in enumerate(filled) if not full]
    return table.replace_schema_metadata({SHEET: json.dumps([first + 1, empty])})


def _name(cell: Any) -> str:
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def _column(name: str, cells: tuple[Any, ...]) -> pa.Array:
    values = np.empty(len(cells), dtype=object)
    values[:] = [None if isinstance(cell, str) and cell.strip() in _NOTHING else cell for cell in cells]
    types = set(map(type, values)) - {type(None)}
    if types == {float}:
        numbers = pa.array(values, pa.float64())
        whole = all(v is None or (v.is_integer() and abs(v) < _EXACT) for v in values)
        return numbers.cast(pa.int64()) if whole else numbers  # a sheet knows no integers
    if dt.datetime in types and types <= {dt.date, dt.datetime}:  # midnight comes as a date
        values[:] = [
            v if v is None or isinstance(v, dt.datetime) else dt.datetime(v.year, v.month, v.day) for v in values
        ]
    elif len(types) > 1:
        values[:] = [_name(v) if isinstance(v, float) else v for v in values]  # 3, not 3.0, beside text
    return arrow_of_objects(name, values)


def _reference(row: int, column: int) -> str:
    """The name of a cell, both counted from 0."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"
