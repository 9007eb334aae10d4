"""Columns of a training table whose type is questionable, since many of their values read as another one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.messages import Option
from ptad.tables.bad_cells import quoted
from ptad.tables.column_types import MOST_BAD, Reading
from ptad.tables.notes import Note
from ptad.tables.number_format import PLAIN
from ptad.tables.values import CODE_TEXT, decoded, is_text

_EXAMPLES = 3
_PLURALS = {"numeric": "numbers", "boolean": "true or false", "datetime": "dates", "date": "dates", "time": "times"}


def doubt_of(name: str, reading: Reading, array: pa.Array, readable: pa.Array) -> Note | None:
    """Return what is questionable about a training column, or None.

    Parameters
    ----------
    name : str
        The column.
    reading : Reading
        How it is read.
    array : pyarrow.Array
        Its cells.
    readable : pyarrow.Array
        The same with nulls in place of cells that cannot be read so.
    """
    array = decoded(array)
    present = len(array) - array.null_count
    if not present or not is_text(array.type):
        return None
    if reading.type in ("categorical", "text"):
        return _doubt_of_text(name, array.drop_null())
    share = (readable.null_count - array.null_count) / present
    if share <= MOST_BAD:
        return None
    odd = array.filter(pc.and_(array.is_valid(), readable.is_null()))
    read = _PLURALS.get(reading.type, reading.type)
    text = f"Column {name!r} is read as {read}: {_share(share, odd)} are not and count as missing"
    return Note(text, (Option("types", (name, "categorical")),), True)


def _doubt_of_text(name: str, array: pa.Array) -> Note | None:
    text = pc.utf8_trim_whitespace(array)
    if pc.any(pc.match_substring_regex(text, CODE_TEXT)).as_py():
        return None
    fits = PLAIN.fits(text)
    share = 1.0 - float(np.mean(fits))
    if not MOST_BAD < share < 0.5:
        return None
    found = _share(share, array.filter(pa.array(~fits)))
    text = f"Column {name!r} is read as text: {found} are not numbers, the others are; as numbers, these are missing"
    return Note(text, (Option("types", (name, "numeric")),), True)


def _share(share: float, odd: pa.Array) -> str:
    examples = ", ".join(quoted(value) for value in pc.unique(odd)[:_EXAMPLES].to_pylist())
    percent = f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"
    return f"{percent} % of its values ({examples})"
