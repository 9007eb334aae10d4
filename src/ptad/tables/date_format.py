"""Date formats: 17/10/2014, 10/17/14, 17.10.2014 08:30, 17-Oct-2014, 20141017.

Formats are those of ``strftime`` (``%d/%m/%Y``). A format is compiled to a regular expression, whose groups become
numbers for a whole column at once. A cell that does not match, or names a day that does not exist, becomes null. The
formats of a column of text are inferred from all its values.

``pyarrow.compute.strptime`` does not replace this: it turns 31/02/2020 into a day of March, has neither fractions of a
second nor optional parts, and reads names of months in the language of the process.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import SettingError
from ptad.tables.number_format import MOST_BAD

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
# Formats with optional parts, which strftime does not have.
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


def has_zone(form: str) -> bool:
    """Whether a format holds a time zone."""
    return "%z" in form


def example(form: str) -> str:
    """An example of a date in a format."""
    return dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC).strftime(form)


def check_format(form: str, name: str) -> None:
    """Raise if a format has no day, month or year, or an unknown part."""
    remedy = "Write for example date:%d/%m/%Y or datetime:%d.%m.%Y %H:%M"
    if len(form) > MOST_CHARACTERS or re.search("[\x00-\x1f\ud800-\udfff]", form):
        raise SettingError(
            f"Column {name!r}: a date format has at most {MOST_CHARACTERS} characters, all of which can be printed. "
            f"{remedy}."
        )
    letters = re.findall(r"%(.?)", form)
    unknown = [f"%{letter}" for letter in letters if letter not in DIRECTIVES and letter != "%"]
    if unknown:
        raise SettingError(
            f"Column {name!r}: the date format {form!r} holds {unknown[0]}, which is not known. {remedy}; known are "
            f"{', '.join(f'%{letter}' for letter in DIRECTIVES)}."
        )
    if len(set(letters)) != len(letters):
        raise SettingError(f"Column {name!r}: the date format {form!r} names a part twice. {remedy}.")
    if not all(set(letters) & set(part) for part in ("d", "mbB", "Yy")):
        raise SettingError(f"Column {name!r}: the date format {form!r} needs day, month and year. {remedy}.")


def matches(text: pa.Array, form: str) -> np.ndarray:
    """Whether each present cell matches the pattern of a format; the day need not exist."""
    return np.asarray(pc.match_substring_regex(text, _pattern(form)).fill_null(False))


def parse_dates(text: pa.Array, form: str) -> pa.Array:
    """Stripped text as timestamps of microseconds, in UTC if the format has a zone; null where it cannot be read."""
    if form in (ISO, ISO_ZONED) and matches(text.drop_null(), form).all():
        with suppress(pa.ArrowInvalid):  # days that do not exist
            return pc.cast(text, pa.timestamp("us", "UTC" if form == ISO_ZONED else None))  # four times as fast
    fields = pc.extract_regex(text, _pattern(form))
    valid = np.asarray(fields.is_valid())
    letters = {field.name for field in fields.type}

    def part(letter: str, default: int = 0) -> np.ndarray:
        if letter not in letters:
            return np.full(len(text), default, dtype=np.int64)
        return _to_integers(pc.struct_field(fields, letter))

    month = part("m", 1)
    for letter in ("b", "B"):
        if letter in letters:
            names = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(fields, letter), 0, 3))
            month = np.asarray(pc.index_in(names, value_set=pa.array(_MONTHS, names.type)).fill_null(-1)) + 1
    year, day = part("Y", 1970), part("d", 1)
    if "y" in letters:
        short = part("y")
        year = np.where(short < _PIVOT, 2000, 1900) + short
    hour, minute, second = part("H"), part("M"), part("S")
    if "I" in letters:
        hour = part("I")
        valid &= (hour >= 1) & (hour <= 12)
        hour = hour % 12
    if "p" in letters:
        hour = hour + 12 * np.asarray(pc.match_substring_regex(pc.struct_field(fields, "p"), "^[Pp]").fill_null(False))
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    first = (np.where(valid, year - 1970, 0) * 12 + np.where(valid, month - 1, 0)).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    valid &= (day >= 1) & (day <= (first + 1).astype("datetime64[D]").astype(np.int64) - start)
    seconds = (start + day - 1) * _DAY + hour * 3600 + minute * 60 + second
    if "z" in letters:
        seconds = seconds - _zone_seconds(pc.struct_field(fields, "z"))
    ticks = seconds * 1_000_000
    if "f" in letters:
        digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(fields, "f"), 6, "0"), 0, 6)
        ticks = ticks + _to_integers(digits)
    return pa.array(np.where(valid, ticks, 0), pa.timestamp("us", "UTC" if "z" in letters else None), mask=~valid)


def _zone_seconds(zones: pa.Array) -> np.ndarray:
    """Seconds that a zone such as +02:00 is ahead of UTC."""
    fields = pc.extract_regex(zones, r"^(?P<sign>[+-])(?P<h>\d{2}):?(?P<m>\d{0,2})$")
    ahead = 3600 * _to_integers(pc.struct_field(fields, "h")) + 60 * _to_integers(pc.struct_field(fields, "m"))
    behind = np.asarray(pc.equal(pc.struct_field(fields, "sign"), "-").fill_null(False))
    return np.asarray(np.where(behind, -ahead, ahead))


def _to_integers(digits: pa.Array) -> np.ndarray:
    """Digits as integers, 0 where there are none."""
    return np.asarray(pc.cast(pc.if_else(pc.equal(digits, ""), "0", digits).fill_null("0"), pa.int64()))


@cache
def _pattern(form: str) -> str:
    """The regular expression of a format; a day or month without separators has two digits."""
    if form in _PATTERNS:
        return _PATTERNS[form]
    pattern = ""
    parts = re.findall(r"%.|[^%]+", form)
    for before, part, after in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
        if not part.startswith("%") or part == "%%":
            pattern += re.escape(part.replace("%%", "%"))
            continue
        digits = DIRECTIVES[part[1]]
        if digits == _TWO and (before.startswith("%") or after.startswith("%")):
            digits = r"\d{2}"
        pattern += f"(?P<{part[1]}>{digits})"
    return f"^{pattern}$"


_CLOCK_SHAPE = (
    r"(?:(?P<gap>T| |, )(?P<H>\d{1,2}):\d{2}(?P<S>:\d{2}(?P<f>\.\d{1,9})?)?(?P<p> ?[AaPp]\.?[Mm]\.?)?"
    r"(?P<z> ?(?:Z|[+-]\d{2}(?::?\d{2})?))?)?"
)
# 17/10/2014 and 10/17/14, 2014/10/17, 17-Oct-2014
_SHAPES = (
    rf"^\d{{1,2}}(?P<s>[/.-])\d{{1,2}}(?P<t>[/.-])(?P<y>\d{{2}}|\d{{4}}){_CLOCK_SHAPE}$",
    rf"^\d{{4}}(?P<s>[/.-])\d{{1,2}}(?P<t>[/.-])\d{{1,2}}{_CLOCK_SHAPE}$",
    rf"^\d{{1,2}}(?P<s>[ /.-])[A-Za-z]{{3,9}}(?P<t>[ /.-])(?P<y>\d{{2}}|\d{{4}}){_CLOCK_SHAPE}$",
)
COMPACT = "%Y%m%d"
_COMPACT = r"^(?:19|20|21)\d{6}$"
FIRST_YEAR, LAST_YEAR = 1900, 2100
# Words in the names of columns of dates, in a few languages; "update" and "validated" do not match.
_NAME = re.compile(r"(?:^|[^a-z])(?:date|datum|fecha|data|dato|day|jour|dia|tag|dt|dob|ymd|yyyymmdd)(?:$|[^a-z])")
_MANY_DAYS = 60  # so many different numbers are not all valid days by chance, nor if they are consecutive
_MOST_TRIES = 32  # formats that are tried, including those in which no value is a valid date


@dataclass(frozen=True)
class DateFormats:
    """The date formats of a column of text."""

    formats: tuple[str, ...]  # a cell is read by the first one that it matches
    share: float  # of the present values that can be read
    guessed: bool = False  # whether no value decides if the day or the month comes first
    counts: tuple[int, ...] = ()  # values that each format reads

    @property
    def type(self) -> str:
        """The column type: a date unless a format has a time of day."""
        return "datetime" if any("%H" in form or "%I" in form for form in self.formats) else "date"


def infer_dates(name: str, text: pa.Array) -> DateFormats | None:
    """Infer the date formats of the stripped text of a column; None where it holds no dates.

    Whether the day or the month comes first is decided by all values together. Where values contradict each other, the
    minority cannot be read; where none decides, the day comes first. For eight digits see :func:`are_days`.
    """
    text = text.drop_null()
    if not len(text):
        return None
    if are_days(name, text):
        return DateFormats((COMPACT,), 1.0, counts=(len(text),))
    shaped = np.zeros(len(text), dtype=bool)
    for shape in _SHAPES:
        shaped |= np.asarray(pc.match_substring_regex(text, shape))
    if 2 * shaped.sum() <= len(text):
        return None
    rest = text.filter(pa.array(shaped))
    month_first, guessed = _month_first(rest)
    formats: list[str] = []
    counts: list[int] = []
    for _ in range(_MOST_TRIES):
        if not len(rest) or len(formats) == MOST_FORMATS:
            break
        form = _format_of(rest[0].as_py(), month_first)
        matching = matches(rest, form)
        dates = parse_dates(rest.filter(pa.array(matching)), form)
        if len(dates) > dates.null_count:
            formats.append(form)
            counts.append(len(dates) - dates.null_count)
        rest = rest.filter(pa.array(~matching))
    if not formats or len({has_zone(form) for form in formats}) > 1:
        return None
    order = np.argsort([-n for n in counts], kind="stable")
    guessed = guessed and any("%m" in form and not form.startswith("%Y") for form in formats)
    return DateFormats(
        tuple(formats[i] for i in order), sum(counts) / len(text), guessed, tuple(counts[i] for i in order)
    )


def iso_zone(text: pa.Array) -> bool | None:
    """Whether ISO 8601 dates have a time zone; None if the text holds no such dates."""
    text = pc.utf8_trim_whitespace(text.drop_null())
    for form in (ISO, ISO_ZONED):
        dates = parse_dates(text.filter(pa.array(matches(text, form))), form)
        if len(dates) and len(dates) - dates.null_count >= (1.0 - MOST_BAD) * len(text):
            return form == ISO_ZONED
    return None


def are_days(name: str, text: pa.Array) -> bool:
    """Whether numbers of eight digits are days such as 20141017.

    All of them must be valid days of the years 1900 to 2100, and either the name of the column is one of dates or there
    are at least 60 different ones. Among so many identifiers or amounts some have a 32nd day or a 13th month.
    """
    if not len(text) or not pc.all(pc.match_substring_regex(text, _COMPACT)).as_py():
        return False
    days = pc.unique(text)
    if len(days) < _MANY_DAYS and not _NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()):
        return False
    dates = parse_dates(days, COMPACT)
    first, last = pc.min_max(pc.year(dates)).as_py().values()
    return bool(dates.null_count == 0 and first >= FIRST_YEAR and last <= LAST_YEAR)


def _month_first(text: pa.Array) -> tuple[bool, bool]:
    """Whether the month comes first in dates such as 10/17/2014, and whether that is a guess."""
    fields = pc.extract_regex(text, r"^(?P<a>\d{1,2})[/.-](?P<b>\d{1,2})[/.-]\d{2}").drop_null()
    first, second = (_to_integers(pc.struct_field(fields, part)) for part in ("a", "b"))
    days, months = int((first > 12).sum()), int((second > 12).sum())
    return months > days, days == months


def _format_of(value: str, month_first: bool) -> str:
    """The format of one value that matches one of the shapes."""
    shape, match = next((i, m) for i, m in enumerate(re.match(shape, value) for shape in _SHAPES) if m is not None)
    year = "%Y" if shape == 1 or len(match["y"]) == 4 else "%y"
    parts = (("%m", "%d", year) if month_first else ("%d", "%m", year), (year, "%m", "%d"), ("%d", "%b", year))[shape]
    day = f"{parts[0]}{match['s']}{parts[1]}{match['t']}{parts[2]}"
    if match["H"] is None:
        return day
    clock = ("%I" if match["p"] else "%H") + ":%M" + (":%S" if match["S"] else "") + (".%f" if match["f"] else "")
    for part, directive in (("p", "%p"), ("z", "%z")):
        if match[part]:
            clock += (" " if match[part].startswith(" ") else "") + directive
    return f"{day}{match['gap']}{clock}"
