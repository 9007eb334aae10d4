"""Cells of one Arrow column read as numbers, truth values, text or moments, each cell on its own.

A column whose type differs from the one seen in training is converted where nothing is lost. Cells that cannot be read
are an error with the cells as a field: whoever encodes decides whether they count as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.messages import Option
from ptad.tables.bad_cells import UnreadableCells
from ptad.tables.date_format import example, parsed
from ptad.tables.number_format import PLAIN, NumberFormat

CODE_TEXT = r"^[+-]?0\d"  # 00501 is a code, not the number 501
NAIVE_TEXT = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"
ZONED_TEXT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)$"
CLOCK_TEXT = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"
ISO_FORMATS = tuple(f"%Y-%m-%d{time}" for time in ("", "T%H:%M", "T%H:%M:%S", " %H:%M", " %H:%M:%S"))
TRUE_TEXT, FALSE_TEXT = ("true", "1"), ("false", "0")

DAY = 86_400
# 0001-01-01 and 9999-12-31 in seconds from 1970: what every library can show as a date.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def refused(name: str, what: str) -> DataError:
    """The error for a column that cannot be used at all."""
    return DataError(
        f"Column {name!r} holds values of type {what}, which cannot be encoded.",
        "Exclude it with {}, or turn it into numbers, text or dates.",
        (Option("drop", name),),
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))


def decoded(array: pa.Array) -> pa.Array:
    """The array with a dictionary encoding, if any, taken off, and text in one width."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string()) if pa.types.is_string(array.type) else array


def without_missing(array: pa.Array, missing: Sequence[str]) -> pa.Array:
    """The array with NaN, and text that equals one of ``missing`` once stripped, turned into nulls."""
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return without_named(array, missing)


def without_named(array: pa.Array, missing: Sequence[str]) -> pa.Array:
    """The array with text that equals one of ``missing`` once stripped turned into nulls."""
    if not missing:
        return array
    values = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (is_text(values) or pa.types.is_string_view(values)):
        return array
    text = decoded(array).cast(pa.large_string())
    named = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array([m.strip() for m in missing], pa.large_string()))
    cleaned = pc.if_else(named, pa.scalar(None, pa.large_string()), text)
    return cleaned.dictionary_encode() if pa.types.is_dictionary(array.type) else cleaned


def numbers(
    array: pa.Array, name: str, offset: int = 0, origin: int = 0, form: NumberFormat = PLAIN, what: str = "a number"
) -> np.ndarray:
    """Cells as float64 with NaN for missing ones, after ``origin`` is subtracted; ``form`` reads text.

    Integers are subtracted exactly before they become floats, so a column of integers beyond 2**53 keeps its
    differences when ``origin`` is its smallest value.
    """
    array = decoded(array)
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan)
    if is_text(kind):
        text = pc.utf8_trim_whitespace(array)
        _refuse(~form.fits(text), array, name, offset, what, "" if form.is_plain else form.example())
        plain = form.plain(text)
        array = _exact(plain) if origin else pc.cast(plain, pa.float64())
        kind = array.type
    if pa.types.is_duration(kind):
        return _whole_and_rest(array, kind.unit)[2] - origin
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_integer(kind) and origin:
        return shifted(array.fill_null(0).to_numpy(zero_copy_only=False), origin, np.asarray(array.is_null()))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _changed(name, kind, "numbers")
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return values - origin if origin else values


def _exact(text: pa.Array) -> pa.Array:
    """Text as integers where all of it is: a bad cell in the column, which made it text, changes no digit of others."""
    try:
        return pc.cast(text, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(text, pa.float64())


def shifted(values: np.ndarray, origin: Any, missing: np.ndarray | None = None) -> np.ndarray:
    """``values - origin`` for 64-bit integers, rounded once and never overflowing."""
    origin = np.asarray(origin, dtype=object)
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    high = (values >> 32).astype(np.int64) - np.asarray(origin >> 32, dtype=np.int64)
    low = (values & 0xFFFFFFFF).astype(np.int64) - np.asarray(origin & 0xFFFFFFFF, dtype=np.int64)
    result = np.asarray(high.astype(np.float64) * 2.0**32 + low.astype(np.float64))
    if missing is not None:
        result[missing] = np.nan
    return result


def truths(array: pa.Array, name: str, offset: int = 0) -> np.ndarray:
    """Cells as 0.0 or 1.0; the numbers 0 and 1 and the words true and false (any case) count as such."""
    array = decoded(array)
    if is_text(array.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(array))
        true = pc.is_in(words, value_set=pa.array(TRUE_TEXT, pa.large_string()))
        false = pc.is_in(words, value_set=pa.array(FALSE_TEXT, pa.large_string()))
        _refuse(~np.asarray(pc.or_(pc.or_(true, false), array.is_null())), array, name, offset, "true or false")
        array = pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))
    values = numbers(array, name, offset)
    _refuse(~((values == 0) | (values == 1) | np.isnan(values)), array, name, offset, "true or false")
    return values


def texts(array: pa.Array, name: str) -> pa.Array:
    """Cells as text. Whole numbers lose a trailing ``.0``, so 3 and 3.0 are the same category."""
    array = without_missing(decoded(array), ())
    kind = array.type
    if is_text(kind):
        return array
    if pa.types.is_boolean(kind):
        return pc.if_else(array, pa.scalar("True", pa.large_string()), pa.scalar("False", pa.large_string()))
    try:
        return array.cast(pa.large_string())
    except pa.ArrowException as error:
        raise refused(name, str(kind)) from error


def moments(
    array: pa.Array, name: str, offset: int, *, zoned: bool, formats: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dates as whole seconds since 1970 (UTC for zoned ones), the rest of a second, and a mask of missing ones.

    Text, and whole numbers such as 20141017, are read by the first of the ``formats`` that fits; without any, text is
    ISO 8601. Moments before year 1 or after 9999 are moved to that border.
    """
    array = moment_array(array, name, offset, zoned=zoned, formats=formats)
    kind = array.type
    if pa.types.is_timestamp(kind):
        if (kind.tz is not None) != zoned and array.null_count < len(array):
            had, has = ("a time zone", "none") if zoned else ("no time zone", f"the zone {kind.tz}")
            raise DataError(
                f"Column {name!r} had {had} in training and has {has} now, so its hours cannot be compared. "
                "Convert it to the form used in training."
            )
        whole, rest, _ = _whole_and_rest(array, kind.unit)
    elif pa.types.is_date(kind):
        days = array.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        whole, rest = days * DAY, np.zeros(len(array))
    elif pa.types.is_null(kind):
        whole, rest = np.zeros(len(array), dtype=np.int64), np.zeros(len(array))
    else:
        raise _changed(name, kind, "dates")
    return np.clip(whole, FIRST_SECOND, LAST_SECOND), rest, np.asarray(array.is_null())


def moment_array(array: pa.Array, name: str, offset: int, *, zoned: bool, formats: Sequence[str]) -> pa.Array:
    """A column of dates with its text turned into timestamps."""
    array = decoded(array)
    if formats and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = whole_text(array)
    if is_text(array.type):
        return _read_moments(array, name, offset, formats) if formats else _parsed_moments(array, name, offset, zoned)
    return array


def whole_text(array: pa.Array) -> pa.Array:
    """Numbers as text, whole ones without a fraction: a column of days such as 20141017 with gaps may hold floats."""
    array = without_missing(array, ())
    if pa.types.is_floating(array.type) and pc.all(pc.equal(array, pc.floor(array)), min_count=0).as_py():
        array = array.cast(pa.int64(), safe=False)
    return array.cast(pa.large_string())


def _read_moments(array: pa.Array, name: str, offset: int, formats: Sequence[str]) -> pa.Array:
    text = pc.utf8_trim_whitespace(array)
    found = pc.coalesce(*(parsed(text, form) for form in formats))
    if found.null_count > text.null_count:  # ISO 8601 is always understood: it cannot mean anything else
        found = pc.coalesce(found, *(parsed(text, form + ("%z" if found.type.tz else "")) for form in ISO_FORMATS))
    bad = np.asarray(pc.and_(found.is_null(), array.is_valid()))
    _refuse(bad, array, name, offset, "a date", " or ".join(map(example, formats)))
    return found


def day_times(array: pa.Array, name: str, offset: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of day as whole seconds since midnight, the rest of a second, and a mask of missing ones."""
    array = decoded(array)
    if is_text(array.type):
        array = _parsed_times(array, name, offset)
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64), np.zeros(len(array)), np.ones(len(array), dtype=bool)
    if not pa.types.is_time(kind):
        raise _changed(name, kind, "times of day")
    whole, rest, _ = _whole_and_rest(array, kind.unit)
    return whole, rest, np.asarray(array.is_null())


def looks_like(array: pa.Array, pattern: str) -> bool:
    """Whether every present value of a text column, once stripped, has the form of ``pattern``."""
    return bool(_matches(pc.utf8_trim_whitespace(array), pattern).all())


def share_like(array: pa.Array, pattern: str, unit: str | None = None, zone: str | None = None) -> float:
    """Which share of the present values of a text column has the form of ``pattern``, and is a moment if so told."""
    text = pc.utf8_trim_whitespace(array.drop_null())
    fits = text.filter(pa.array(_matches(text, pattern)))
    # 2024-02-31 has the form of a date and is none
    n = len(fits) - (len(_uncastable(fits, pa.timestamp(unit, zone), 0)) if unit else 0)
    return n / len(text) if len(text) else 0.0


def _matches(text: pa.Array, pattern: str) -> np.ndarray:
    """Per cell: missing, or of the form of ``pattern``."""
    return np.asarray(pc.match_substring_regex(text, pattern).fill_null(True))


def _whole_and_rest(array: pa.Array, unit: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    per = _PER_SECOND[unit]
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    ticks = array.cast(width).fill_null(0).to_numpy().astype(np.int64)
    whole = ticks // per
    rest = (ticks - whole * per) / per
    seconds = whole.astype(np.float64) + rest
    seconds[np.asarray(array.is_null())] = np.nan
    return whole, rest, seconds


def _parsed_moments(array: pa.Array, name: str, offset: int, zoned: bool) -> pa.Array:
    text = pc.utf8_trim_whitespace(array)
    form = "2024-01-31T12:00Z (with a zone)" if zoned else "2024-01-31 or 2024-01-31T12:00"
    _refuse(~_matches(text, ZONED_TEXT if zoned else NAIVE_TEXT), array, name, offset, "a date", form)
    return _cast_or_refuse(text, pa.timestamp("us", "UTC" if zoned else None), array, name, offset, "a date", form)


def _parsed_times(array: pa.Array, name: str, offset: int) -> pa.Array:
    text = pc.utf8_trim_whitespace(array)
    _refuse(~_matches(text, CLOCK_TEXT), array, name, offset, "a time of day", "12:30")
    # Arrow reads no bare times, but it reads those of the first day of 1970
    moment = pc.binary_join_element_wise(
        pa.scalar("1970-01-01T", pa.large_string()), text, pa.scalar("", pa.large_string())
    )
    parsed = _cast_or_refuse(moment, pa.timestamp("us"), array, name, offset, "a time of day", "12:30")
    return parsed.cast(pa.int64()).cast(pa.time64("us"))


def _cast_or_refuse(
    text: pa.Array, kind: pa.DataType, array: pa.Array, name: str, offset: int, what: str, form: str
) -> pa.Array:
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        bad = np.zeros(len(text), dtype=bool)
        bad[_uncastable(text, kind, 0)] = True
        raise UnreadableCells(name, bad, array, offset, what, form) from None


def _uncastable(text: pa.Array, kind: pa.DataType, start: int) -> list[int]:
    """Places of the cells that cannot be cast, found by halves: few casts where few cells are bad."""
    try:
        pc.cast(text, kind)
    except pa.ArrowInvalid:
        half = len(text) // 2
        if not half:
            return [start]
        return [*_uncastable(text[:half], kind, start), *_uncastable(text[half:], kind, start + half)]
    return []


def _refuse(bad: np.ndarray, array: pa.Array, name: str, offset: int, what: str, form: str = "") -> None:
    if bad.any():
        raise UnreadableCells(name, bad, array, offset, what, form)


def _changed(name: str, kind: pa.DataType, wanted: str) -> DataError:
    return DataError(
        f"Column {name!r} should hold {wanted} but holds {kind}. Convert it to the type it had in training."
    )
