"""Which date formats the text of a column is written in."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.date_format import fits, has_time, has_zone, parsed

_CLOCK = (
    r"(?:(?P<gap>T| |, )(?P<H>\d{1,2}):\d{2}(?P<S>:\d{2}(?P<f>\.\d{1,9})?)?(?P<p> ?[AaPp]\.?[Mm]\.?)?"
    r"(?P<z> ?(?:Z|[+-]\d{2}(?::?\d{2})?))?)?"
)
# 17/10/2014 and 10/17/14, 2014/10/17, 17-Oct-2014
_SHAPES = (
    rf"^\d{{1,2}}(?P<s>[/.-])\d{{1,2}}(?P<t>[/.-])(?P<y>\d{{2}}|\d{{4}}){_CLOCK}$",
    rf"^\d{{4}}(?P<s>[/.-])\d{{1,2}}(?P<t>[/.-])\d{{1,2}}{_CLOCK}$",
    rf"^\d{{1,2}}(?P<s>[ /.-])[A-Za-z]{{3,9}}(?P<t>[ /.-])(?P<y>\d{{2}}|\d{{4}}){_CLOCK}$",
)
COMPACT = "%Y%m%d"
_COMPACT = r"^(?:19|20|21)\d{6}$"
FIRST_YEAR, LAST_YEAR = 1900, 2100
# Names of columns that hold days, in a few languages; "update" and "validated" hold none of them as a word of its own.
_NAME = re.compile(r"(?:^|[^a-z])(?:date|datum|fecha|data|dato|day|jour|dia|tag|dt|dob|ymd|yyyymmdd)(?:$|[^a-z])")
_MANY_DAYS = 60  # so many different numbers are not all valid days by chance, nor as a running number
_MOST_FORMATS = 4
_MOST_TRIES = 32  # formats that are looked at, also those in which no value is a valid date


@dataclass(frozen=True)
class DateFormats:
    """The formats of a column.

    Attributes
    ----------
    formats : tuple of str
        The first one that fits reads a cell.
    share : float
        Share of the present values that are read.
    guessed : bool
        Whether no value says if the day or the month comes first.
    counts : tuple of int
        Values that each format reads.
    """

    formats: tuple[str, ...]
    share: float
    guessed: bool = False
    counts: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        """The column type: a date unless a format has a time of day."""
        return "datetime" if any(map(has_time, self.formats)) else "date"

    @property
    def other_order(self) -> str:
        """The first format with day and month exchanged."""
        return self.formats[0].translate(str.maketrans("dm", "md"))


def infer_dates(name: str, text: pa.Array) -> DateFormats | None:
    """The formats that the stripped text of a column is written in; None where it holds no dates.

    Day or month first is decided by all values together. Where values contradict each other, the minority cannot be
    read; where none decides, the day is taken to come first. Eight digits are days only as :func:`are_days` says.
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
    month_first, guessed = _order(rest)
    formats: list[str] = []
    counts: list[int] = []
    for _ in range(_MOST_TRIES):
        if not len(rest) or len(formats) == _MOST_FORMATS:
            break
        form = _format_of(rest[0].as_py(), month_first)
        own = fits(rest, form)
        read = parsed(rest.filter(pa.array(own)), form)
        if len(read) > read.null_count:
            formats.append(form)
            counts.append(len(read) - read.null_count)
        rest = rest.filter(pa.array(~own))
    if not formats or len({has_zone(form) for form in formats}) > 1:
        return None
    order = np.argsort([-n for n in counts], kind="stable")
    named = any("%m" in form and not form.startswith("%Y") for form in formats)
    return DateFormats(
        tuple(formats[i] for i in order), sum(counts) / len(text), guessed and named, tuple(counts[i] for i in order)
    )


def are_days(name: str, text: pa.Array) -> bool:
    """Whether numbers of eight digits are days such as 20141017.

    All of them must be valid days of the years 1900 to 2100, and either the name of the column says that they are days
    or there are at least 60 different ones. Identifiers and amounts that look alike hit a 32nd day or a 13th month.
    """
    if not len(text) or not pc.all(pc.match_substring_regex(text, _COMPACT)).as_py():
        return False
    days = pc.unique(text)
    if len(days) < _MANY_DAYS and not _NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()):
        return False
    read = parsed(days, COMPACT)
    years = pc.year(read)
    first, last = pc.min_max(years).as_py().values()
    return bool(read.null_count == 0 and first >= FIRST_YEAR and last <= LAST_YEAR)


def _order(text: pa.Array) -> tuple[bool, bool]:
    """Whether the month comes first in dates such as 10/17/2014, and whether that is a guess."""
    found = pc.extract_regex(text, r"^(?P<a>\d{1,2})[/.-](?P<b>\d{1,2})[/.-]\d{2}").drop_null()
    first, second = (np.asarray(pc.cast(pc.struct_field(found, part), pa.int64())) for part in ("a", "b"))
    days, months = int((first > 12).sum()), int((second > 12).sum())
    return months > days, days == months


def _format_of(value: str, month_first: bool) -> str:
    """The format that one value of a known shape is written in."""
    place, found = next((i, m) for i, m in enumerate(re.match(shape, value) for shape in _SHAPES) if m is not None)
    year = "%Y" if place == 1 or len(found["y"]) == 4 else "%y"
    parts = (("%m", "%d", year) if month_first else ("%d", "%m", year), (year, "%m", "%d"), ("%d", "%b", year))[place]
    day = f"{parts[0]}{found['s']}{parts[1]}{found['t']}{parts[2]}"
    if found["H"] is None:
        return day
    clock = ("%I" if found["p"] else "%H") + ":%M" + (":%S" if found["S"] else "") + (".%f" if found["f"] else "")
    for part, directive in (("p", "%p"), ("z", "%z")):
        if found[part]:
            clock += (" " if found[part].startswith(" ") else "") + directive
    return f"{day}{found['gap']}{clock}"
