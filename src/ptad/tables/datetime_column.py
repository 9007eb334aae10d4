"""Dates, date-times and times of day: a clipped linear coordinate and the cycles that varied in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, SettingError
from ptad.layout import Boolean, Integer, ListOf, Record, Text, damaged
from ptad.tables.date_format import (
    CLOCK,
    ISO,
    ISO_ZONED,
    MOST_FORMATS,
    check_format,
    example,
    has_zone,
    matches,
    parse_dates,
)
from ptad.tables.values import check_readable, decoded, is_text, split_seconds, without_missing, wrong_type

DAY = 86_400
# 0001-01-01 and 9999-12-31 in seconds since 1970: the range of dates of Python.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
_STEPS = {"day": DAY, "week": 7, "year": 366}  # seconds of a day, days of a week, days of a year
_YEAR = 366 * DAY


@dataclass(frozen=True)
class DatetimeColumn:
    """The encoder of a column of dates, date-times or times of day."""

    name: str
    type: str
    # Limits of the linear coordinate in seconds since 1970; moments outside are clipped. They are the 1 % and 99 %
    # quantiles of the training rows, extended on both sides by the distance between them, so that a stray 9999-12-31
    # does not stretch the scale.
    first: int
    last: int
    # "day" (the time of day varies in training), "week" (the weekday varies), "year" (the training rows span more than
    # a year); each is encoded as a sine and a cosine
    cycles: tuple[str, ...]
    zoned: bool = False  # whether the column has a time zone; its cycles are then those of UTC
    formats: tuple[str, ...] = ()  # of text; a cell is read by the first one that it matches; none: ISO 8601

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array, formats: tuple[str, ...] = ()) -> DatetimeColumn:
        """Fit the range and the cycles."""
        if type == "time":
            return cls(name, type, 0, DAY, ("day",))
        zoned = is_zoned(decoded(array), formats)
        whole, _, missing = moments(array, name, zoned=zoned, formats=formats)
        present = whole[~missing]
        low, high = (int(np.floor(q)) for q in np.quantile(present, (0.01, 0.99)))
        reach = max(high - low, DAY)
        days = present // DAY
        cycles = {
            "day": type == "datetime" and np.ptp(present - days * DAY) > 0,
            "week": np.ptp((days + 3) % 7) > 0,
            "year": high - low > _YEAR,
        }
        first, last = max(low - reach, FIRST_SECOND), min(high + reach, LAST_SECOND)
        return cls(name, type, first, last, tuple(c for c, varied in cycles.items() if varied), zoned, formats)

    @property
    def labels(self) -> tuple[str, ...]:
        waves = [f"{self.name}: {wave} of {cycle}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return (f"{self.name}: time", *waves)

    @property
    def resolution(self) -> np.ndarray:
        """Half the step of decoded moments; infinite for the cycles, which are not decoded."""
        return np.array([DAY / 2 if self.type == "date" else 0.5, *np.full(2 * len(self.cycles), np.inf)])

    def raw(self, array: pa.Array) -> np.ndarray:
        """Seconds since ``first`` and the cycles, of shape (n_rows, 1 + 2 * n_cycles), NaN where missing."""
        if self.type == "time":
            whole, rest, missing = day_times(array, self.name)
        else:
            whole, rest, missing = moments(array, self.name, zoned=self.zoned, formats=self.formats)
        block = np.empty((len(whole), 1 + 2 * len(self.cycles)))
        block[:, 0] = np.clip((whole - self.first) + rest, 0.0, self.last - self.first)
        days = whole // DAY
        for j, cycle in enumerate(self.cycles):
            if cycle == "day":
                step = whole - days * DAY
            elif cycle == "week":
                step = (days + 3) % 7  # 1970-01-01 was a Thursday; Monday is 0
            else:
                dates = days.astype("datetime64[D]")
                step = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64)
            # looked up, not computed: the same bits in any batch
            block[:, 1 + 2 * j : 3 + 2 * j] = _sines_and_cosines(cycle)[step]
        block[missing] = np.nan
        return block

    def decode(self, raw: np.ndarray) -> np.ndarray:
        """Moments from the linear coordinate, of the same type as observed ones; datetime64 without a zone."""
        span = self.last - self.first
        seconds = self.first + np.rint(np.clip(np.nan_to_num(raw[:, 0]), 0, span)).astype(np.int64)
        if self.type == "time":
            clock = pa.array(np.minimum(seconds, DAY - 1).astype(np.int32)).cast(pa.time32("s"))
            return np.asarray(clock.to_numpy(zero_copy_only=False))
        if self.type == "date":
            return np.asarray((seconds + DAY // 2) // DAY).astype("datetime64[D]").astype(object)  # nearest midnight
        if self.zoned:
            return np.array(pa.array(seconds, pa.timestamp("s", "UTC")).to_pylist(), dtype=object)
        return np.asarray(seconds.astype("datetime64[s]"))

    def to_json(self) -> dict[str, Any]:
        state = {"first": self.first, "last": self.last, "cycles": list(self.cycles), "zoned": self.zoned}
        return state | ({"formats": list(self.formats)} if self.formats else {})

    @classmethod
    def layout(cls, type: str) -> Record:
        moment = Integer(0, DAY) if type == "time" else Integer(FIRST_SECOND, LAST_SECOND)
        cycles = ListOf(Text(tuple(_STEPS)), distinct=True)
        formats = {} if type == "time" else {"formats": ListOf(Text(), low=1, high=MOST_FORMATS, distinct=True)}
        return Record({"first": moment, "last": moment, "cycles": cycles, "zoned": Boolean()}, formats)

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> DatetimeColumn:
        span, formats = (int(state["first"]), int(state["last"])), tuple(state.get("formats", ()))
        if span[0] > span[1]:
            raise damaged("the range of a column of dates", "in order")
        try:
            for form in formats:
                check_format(form, name)
        except SettingError as error:
            raise damaged("a date format", "one that ptad reads") from error
        if len({has_zone(form) for form in formats}) > 1:
            raise damaged("the date formats of a column", "all with a time zone or all without")
        return cls(name, type, *span, tuple(state["cycles"]), bool(state["zoned"]), formats)


def is_zoned(array: pa.Array, formats: tuple[str, ...] = ()) -> bool:
    """Whether a column of dates, or of text that holds dates, has a time zone."""
    if formats and not pa.types.is_temporal(array.type):
        return has_zone(formats[0])
    if is_text(array.type):
        text = pc.utf8_trim_whitespace(array.drop_null())
        return bool(2 * matches(text, ISO_ZONED).sum() > len(text))  # the others cannot be read
    return pa.types.is_timestamp(array.type) and array.type.tz is not None


def moments(
    array: pa.Array, name: str, *, zoned: bool, formats: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dates as whole seconds since 1970 (UTC for zoned ones), the rest of a second, and a mask of missing ones.

    Moments before year 1 or after 9999 are clipped.
    """
    array = parse_moments(array, name, zoned=zoned, formats=formats)
    kind = array.type
    if pa.types.is_date(kind):
        array = array.cast(pa.date32(), safe=False).cast(pa.timestamp("s"))
    elif pa.types.is_null(kind):
        array = array.cast(pa.timestamp("s"))
    elif not pa.types.is_timestamp(kind):
        raise wrong_type(name, kind, "dates")
    elif (kind.tz is not None) != zoned and array.null_count < len(array):
        had, has = ("a time zone", "none") if zoned else ("no time zone", f"the zone {kind.tz}")
        raise DataError(
            f"Column {name!r} had {had} in training and has {has} now, so its hours cannot be compared. "
            "Convert it to the form used in training."
        )
    whole, rest, missing = split_seconds(array)
    return np.clip(whole, FIRST_SECOND, LAST_SECOND), rest, missing


def parse_moments(array: pa.Array, name: str, *, zoned: bool, formats: Sequence[str]) -> pa.Array:
    """A column of dates, with text, and whole numbers such as 20141017, parsed as timestamps.

    Text is read by the first of the ``formats`` that it matches, or as ISO 8601.
    """
    array = decoded(array)
    if formats and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = integers_to_text(array)
    if not is_text(array.type):
        return array
    text = pc.utf8_trim_whitespace(array)
    dates = pa.nulls(len(text), pa.timestamp("us", "UTC" if zoned else None))
    for form in (*formats, ISO_ZONED if zoned else ISO):  # ISO 8601 is unambiguous: it is always read
        if dates.null_count > text.null_count:
            dates = pc.coalesce(dates, parse_dates(text, form))
    iso = "2024-01-31T12:00Z (with a zone)" if zoned else "2024-01-31 or 2024-01-31T12:00"
    check_readable(_is_read(dates, text), array, name, "a date", " or ".join(map(example, formats)) or iso)
    return dates


def integers_to_text(array: pa.Array) -> pa.Array:
    """Numbers as text, floats without a fraction as integers: a column such as 20141017 with gaps may hold floats."""
    array = without_missing(array, ())
    if pa.types.is_floating(array.type) and pc.all(pc.equal(array, pc.floor(array)), min_count=0).as_py():
        array = array.cast(pa.int64(), safe=False)
    return array.cast(pa.large_string())


def day_times(array: pa.Array, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of day as whole seconds since midnight, the rest of a second, and a mask of missing ones."""
    array = decoded(array)
    if is_text(array.type):
        text = pc.utf8_trim_whitespace(array)
        times = parse_dates(text, CLOCK)  # on the first day of 1970
        check_readable(_is_read(times, text), array, name, "a time of day", "12:30")
        return split_seconds(times)
    if pa.types.is_null(array.type):
        array = array.cast(pa.time32("s"))
    elif not pa.types.is_time(array.type):
        raise wrong_type(name, array.type, "times of day")
    return split_seconds(array)


def _is_read(dates: pa.Array, text: pa.Array) -> np.ndarray:
    return np.asarray(pc.or_(dates.is_valid(), text.is_null()))


@cache
def _sines_and_cosines(cycle: str) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(_STEPS[cycle]) / _STEPS[cycle]
    return np.column_stack([np.sin(angle), np.cos(angle)])
