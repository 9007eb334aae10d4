"""Dates, date-times and times of day: a clipped linear coordinate and the cycles that varied in training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import SettingError
from ptad.layout import Listed, Record, Text, Truth, Whole, damaged
from ptad.tables.date_format import ISO_ZONED, MOST_FORMATS, check_format, fits, has_zone
from ptad.tables.moments import DAY, FIRST_SECOND, LAST_SECOND, day_times, moments
from ptad.tables.values import decoded, is_text

_STEPS = {"day": DAY, "week": 7, "year": 366}  # seconds of a day, days of a week, days of a year
_YEAR = 366 * DAY


@dataclass(frozen=True)
class DatetimeColumn:
    """A point in time.

    Attributes
    ----------
    first, last : int
        Seconds since 1970 between which the linear coordinate runs; anything outside is moved to the border. They are
        the 1 % and 99 % quantiles of the training rows, widened on both sides by the distance between them, so that a
        stray 9999-12-31 neither stretches the scale nor breaks it.
    cycles : tuple of str
        "day" (the time of day varied), "week" (the weekday varied), "year" (the training rows span more than a year),
        each as a sine and a cosine.
    zoned : bool
        Whether the column has a time zone; its cycles are then those of UTC.
    formats : tuple of str
        How text is read: the first format that fits; ISO 8601 if there is none.
    """

    name: str
    type: str
    first: int
    last: int
    cycles: tuple[str, ...]
    zoned: bool = False
    formats: tuple[str, ...] = ()

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array, formats: tuple[str, ...] = ()) -> DatetimeColumn:
        """Learn the range and the cycles."""
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
        """Names of the encoded columns."""
        waves = [f"{self.name}: {wave} of {cycle}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return (f"{self.name}: time", *waves)

    @property
    def resolution(self) -> np.ndarray:
        """How far apart two moments may be and still read alike; the cycles follow from the moment."""
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
            block[:, 1 + 2 * j : 3 + 2 * j] = _waves(cycle)[step]
        block[missing] = np.nan
        return block

    def decode(self, raw: np.ndarray) -> np.ndarray:
        """Moments from the linear coordinate, of the type that observed ones have; datetime64 without a zone."""
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
        """Plain types for the schema file."""
        state = {"first": self.first, "last": self.last, "cycles": list(self.cycles), "zoned": self.zoned}
        return state | ({"formats": list(self.formats)} if self.formats else {})

    @classmethod
    def layout(cls, type: str) -> Record:
        """What :meth:`to_json` writes."""
        moment = Whole(0, DAY) if type == "time" else Whole(FIRST_SECOND, LAST_SECOND)
        cycles = Listed(Text(tuple(_STEPS)), distinct=True)
        formats = {} if type == "time" else {"formats": Listed(Text(), low=1, high=MOST_FORMATS, distinct=True)}
        return Record({"first": moment, "last": moment, "cycles": cycles, "zoned": Truth()}, formats)

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> DatetimeColumn:
        """Read back what :meth:`to_json` wrote."""
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
        return bool(2 * fits(text, ISO_ZONED).sum() > len(text))  # the others cannot be read
    return pa.types.is_timestamp(array.type) and array.type.tz is not None


@cache
def _waves(cycle: str) -> np.ndarray:
    angle = 2.0 * np.pi * np.arange(_STEPS[cycle]) / _STEPS[cycle]
    return np.column_stack([np.sin(angle), np.cos(angle)])
