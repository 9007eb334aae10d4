"""Dates as people write them: 17/10/2014, 10/17/14, 17.10.2014 08:30, 17-Oct-2014, 20141017.

A format is written as everywhere in Python (``%d/%m/%Y``). It is compiled to one regular expression whose groups become
numbers by whole columns; a cell that does not fit, or names a day that no calendar has, comes out as null.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import SettingError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TWO = r"\d{1,2}"
DIRECTIVES = {
    "d": _TWO,
    "m": _TWO,
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "b": r"[A-Za-z]{3,9}",
    "B": r"[A-Za-z]{3,9}",
    "H": _TWO,
    "I": _TWO,
    "M": r"\d{2}",
    "S": r"\d{2}",
    "f": r"\d{1,9}",
    "p": r"[AaPp]\.?[Mm]\.?",
    "z": r"Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?",
}
# Formats with parts that may be absent, which no format of Python can say.
CLOCK, ISO, ISO_ZONED = "time of day", "ISO 8601", "ISO 8601 with a zone"
_DATE = r"(?P<Y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
_TIME = r"(?P<H>\d{2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.(?P<f>\d{1,6}))?)?"
_PATTERNS = {
    CLOCK: f"^{_TIME}$",
    ISO: f"^{_DATE}(?:[T ]{_TIME})?$",
    ISO_ZONED: f"^{_DATE}[T ]{_TIME}(?P<z>{DIRECTIVES['z']})$",
}
MOST_FORMATS = 4  # of a column
MOST_CHARACTERS = 100  # of a format
_PIVOT = 69  # 69 to 99 are of the last century, 00 to 68 of this one, as in POSIX
_DAY = 86_400


def has_time(form: str) -> bool:
    """Whether a format holds a time of day."""
    return "%H" in form or "%I" in form


def has_zone(form: str) -> bool:
    """Whether a format holds a time zone."""
    return "%z" in form


def example(form: str) -> str:
    """A date in this format."""
    return dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC).strftime(form)


def check_format(form: str, name: str) -> None:
    """Raise if a format does not name a day, or holds something unknown."""
    remedy = "Write for example date:%d/%m/%Y or datetime:%d.%m.%Y %H:%M"
    if len(form) > MOST_CHARACTERS or re.search("[\x00-\x1f\ud800-\udfff]", form):
        raise SettingError(
            f"Column {name!r}: a date format has at most {MOST_CHARACTERS} characters, all of which can be printed. "
            f"{remedy}."
        )
    found = re.findall(r"%(.?)", form)
    unknown = [f"%{letter}" for letter in found if letter not in DIRECTIVES and letter != "%"]
    if unknown:
        raise SettingError(
            f"Column {name!r}: the date format {form!r} holds {unknown[0]}, which is not known. {remedy}; known are "
            f"{', '.join(f'%{letter}' for letter in DIRECTIVES)}."
        )
    if len(set(found)) != len(found):
        raise SettingError(f"Column {name!r}: the date format {form!r} names a part twice. {remedy}.")
    if not all(set(found) & set(part) for part in ("d", "mbB", "Yy")):
        raise SettingError(f"Column {name!r}: the date format {form!r} needs day, month and year. {remedy}.")


def fits(text: pa.Array, form: str) -> np.ndarray:
    """Per present cell: whether it is written in this format; whether such a day exists is another question."""
    return np.asarray(pc.match_substring_regex(text, _pattern(form)).fill_null(False))


def parsed(text: pa.Array, form: str) -> pa.Array:
    """Stripped text as timestamps of microseconds, in UTC if the format has a zone; null where it cannot be read."""
    if form in (ISO, ISO_ZONED) and fits(text.drop_null(), form).all():
        with suppress(pa.ArrowInvalid):  # some days that no calendar has
            return pc.cast(text, pa.timestamp("us", "UTC" if form == ISO_ZONED else None))  # four times as fast
    fields = pc.extract_regex(text, _pattern(form))
    valid = np.asarray(fields.is_valid())
    given = {field.name for field in fields.type}

    def part(letter: str, otherwise: int = 0) -> np.ndarray:
        if letter not in given:
            return np.full(len(text), otherwise, dtype=np.int64)
        return _whole(pc.struct_field(fields, letter))

    month = part("m", 1)
    for letter in ("b", "B"):
        if letter in given:
            names = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(fields, letter), 0, 3))
            month = np.asarray(pc.index_in(names, value_set=pa.array(_MONTHS, names.type)).fill_null(-1)) + 1
    year, day = part("Y", 1970), part("d", 1)
    if "y" in given:
        short = part("y")
        year = np.where(short < _PIVOT, 2000, 1900) + short
    hour, minute, second = part("H"), part("M"), part("S")
    if "I" in given:
        twelve = part("I")
        valid &= (twelve >= 1) & (twelve <= 12)
        hour = twelve % 12
    if "p" in given:
        hour = hour + 12 * np.asarray(pc.match_substring_regex(pc.struct_field(fields, "p"), "^[Pp]").fill_null(False))
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    first = (np.where(valid, year - 1970, 0) * 12 + np.where(valid, month - 1, 0)).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    valid &= (day >= 1) & (day <= (first + 1).astype("datetime64[D]").astype(np.int64) - start)
    seconds = (start + day - 1) * _DAY + hour * 3600 + minute * 60 + second
    if "z" in given:
        seconds = seconds - _zone_seconds(pc.struct_field(fields, "z"))
    ticks = seconds * 1_000_000
    if "f" in given:
        digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(fields, "f"), 6, "0"), 0, 6)
        ticks = ticks + _whole(digits)
    return pa.array(np.where(valid, ticks, 0), pa.timestamp("us", "UTC" if "z" in given else None), mask=~valid)


def _zone_seconds(zones: pa.Array) -> np.ndarray:
    """Seconds that a zone such as +02:00 is ahead of UTC."""
    found = pc.extract_regex(zones, r"^(?P<sign>[+-])(?P<h>\d{2}):?(?P<m>\d{0,2})$")
    ahead = 3600 * _whole(pc.struct_field(found, "h")) + 60 * _whole(pc.struct_field(found, "m"))
    behind = np.asarray(pc.equal(pc.struct_field(found, "sign"), "-").fill_null(False))
    return np.asarray(np.where(behind, -ahead, ahead))


def _whole(digits: pa.Array) -> np.ndarray:
    """Digits as numbers, 0 where there are none."""
    return np.asarray(pc.cast(pc.if_else(pc.equal(digits, ""), "0", digits).fill_null("0"), pa.int64()))


@cache
def _pattern(form: str) -> str:
    """The regular expression of a format; day and month that nothing separates have two digits."""
    if form in _PATTERNS:
        return _PATTERNS[form]
    pieces = re.findall(r"%.|[^%]+", form)
    made = []
    for i, piece in enumerate(pieces):
        if not piece.startswith("%") or piece == "%%":
            made.append(re.escape(piece.replace("%%", "%")))
            continue
        beside = [p for p in (*pieces[max(i - 1, 0) : i], *pieces[i + 1 : i + 2]) if p.startswith("%")]
        digits = DIRECTIVES[piece[1]]
        digits = DIRECTIVES["y"] if beside and digits == _TWO else digits
        made.append(f"(?P<{piece[1]}>{digits})")
    return f"^{''.join(made)}$"
