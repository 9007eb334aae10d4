"""Cells of one Arrow column read as dates or times of day, each cell on its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.tables.date_format import CLOCK, ISO, ISO_ZONED, example, parsed
from ptad.tables.values import changed, decoded, is_text, refuse, ticks, without_missing

DAY = 86_400
# 0001-01-01 and 9999-12-31 in seconds from 1970: what every library can show as a date.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799


def moments(
    array: pa.Array, name: str, *, zoned: bool, formats: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dates as whole seconds since 1970 (UTC for zoned ones), the rest of a second, and a mask of missing ones.

    Text, and whole numbers such as 20141017, are read by the first of the ``formats`` that fits, or as ISO 8601.
    Moments before year 1 or after 9999 are moved to that border.
    """
    array = moment_array(array, name, zoned=zoned, formats=formats)
    kind = array.type
    if pa.types.is_date(kind):
        array = array.cast(pa.date32(), safe=False).cast(pa.timestamp("s"))
    elif pa.types.is_null(kind):
        array = array.cast(pa.timestamp("s"))
    elif not pa.types.is_timestamp(kind):
        raise changed(name, kind, "dates")
    elif (kind.tz is not None) != zoned and array.null_count < len(array):
        had, has = ("a time zone", "none") if zoned else ("no time zone", f"the zone {kind.tz}")
        raise DataError(
            f"Column {name!r} had {had} in training and has {has} now, so its hours cannot be compared. "
            "Convert it to the form used in training."
        )
    whole, rest, missing = ticks(array)
    return np.clip(whole, FIRST_SECOND, LAST_SECOND), rest, missing


def moment_array(array: pa.Array, name: str, *, zoned: bool, formats: Sequence[str]) -> pa.Array:
    """A column of dates with its text turned into timestamps."""
    array = decoded(array)
    if formats and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = whole_text(array)
    if not is_text(array.type):
        return array
    text = pc.utf8_trim_whitespace(array)
    found = pa.nulls(len(text), pa.timestamp("us", "UTC" if zoned else None))
    for form in (*formats, ISO_ZONED if zoned else ISO):  # the last is always understood: it cannot mean anything else
        if found.null_count > text.null_count:
            found = pc.coalesce(found, parsed(text, form))
    iso = "2024-01-31T12:00Z (with a zone)" if zoned else "2024-01-31 or 2024-01-31T12:00"
    refuse(_unread(found, text), array, name, "a date", " or ".join(map(example, formats)) or iso)
    return found


def whole_text(array: pa.Array) -> pa.Array:
    """Numbers as text, whole ones without a fraction: a column of days such as 20141017 with gaps may hold floats."""
    array = without_missing(array, ())
    if pa.types.is_floating(array.type) and pc.all(pc.equal(array, pc.floor(array)), min_count=0).as_py():
        array = array.cast(pa.int64(), safe=False)
    return array.cast(pa.large_string())


def day_times(array: pa.Array, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of day as whole seconds since midnight, the rest of a second, and a mask of missing ones."""
    array = decoded(array)
    if is_text(array.type):
        text = pc.utf8_trim_whitespace(array)
        found = parsed(text, CLOCK)  # on the first day of 1970
        refuse(_unread(found, text), array, name, "a time of day", "12:30")
        return ticks(found)
    if pa.types.is_null(array.type):
        array = array.cast(pa.time32("s"))
    elif not pa.types.is_time(array.type):
        raise changed(name, array.type, "times of day")
    return ticks(array)


def _unread(found: pa.Array, text: pa.Array) -> np.ndarray:
    return np.asarray(pc.and_(found.is_null(), text.is_valid()))
