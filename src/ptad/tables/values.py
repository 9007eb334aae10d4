"""Conversion of the cells of one Arrow column to numbers, booleans or text, each cell on its own.

A column whose type differs from the one seen in training is converted where nothing is lost. Cells that cannot be read
raise :class:`ptad.tables.bad_cells.UnreadableCells`; the encoding decides whether they count as missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, Option
from ptad.tables.bad_cells import UnreadableCells
from ptad.tables.number_format import PLAIN, NumberFormat

EXACT = 2**53  # beyond it float64 skips integers
CODE_TEXT = r"^[+-]?0\d"  # 00501 is a code, not the number 501
TRUE_TEXT, FALSE_TEXT = ("true", "1"), ("false", "0")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def unusable_type(name: str, what: str) -> DataError:
    """The error for a column that cannot be used at all."""
    return DataError(
        f"Column {name!r} holds values of type {what}, which cannot be encoded.",
        "Exclude it with {drop}, or turn it into numbers, text or dates.",
        options=(Option("drop", name),),
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))


def decoded(array: pa.Array) -> pa.Array:
    """The array without a dictionary encoding, with text as ``large_string``."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string()) if pa.types.is_string(array.type) else array


def without_missing(array: pa.Array, missing: Sequence[str]) -> pa.Array:
    """The array with NaN, and text that equals one of ``missing`` once stripped, replaced by nulls."""
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return without_missing_text(array, missing)


def without_missing_text(array: pa.Array, missing: Sequence[str]) -> pa.Array:
    """The array with text that equals one of ``missing`` once stripped replaced by nulls."""
    if not missing:
        return array
    values = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (is_text(values) or pa.types.is_string_view(values)):
        return array
    text = decoded(array).cast(pa.large_string())
    is_missing = pc.is_in(pc.utf8_trim_whitespace(text), value_set=_text_array([m.strip() for m in missing]))
    text = pc.if_else(is_missing, pa.scalar(None, pa.large_string()), text)
    return text.dictionary_encode() if pa.types.is_dictionary(array.type) else text


def _text_array(values: Sequence[str]) -> pa.Array:
    return pa.array(values, pa.large_string())


def numbers(
    array: pa.Array, name: str, origin: int = 0, form: NumberFormat = PLAIN, expected: str = "a number"
) -> np.ndarray:
    """Cells minus ``origin`` as float64, NaN where missing; text is in the number format ``form``.

    Integers are subtracted exactly before they become floats, so a column of integers beyond 2**53 keeps its
    differences when ``origin`` is its smallest value.
    """
    array = decoded(array)
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan)
    if is_text(kind):
        text = pc.utf8_trim_whitespace(array)
        readable = form.matches(text)
        if not readable.all():
            text = form.without_groups(text)
            readable = form.matches(text)
        check_readable(readable, array, name, expected, "" if form.is_plain else form.example())
        text = form.to_plain(text)
        try:
            array = pc.cast(text, pa.int64() if origin else pa.float64())  # as integers no digit is lost
        except pa.ArrowInvalid:
            array = pc.cast(text, pa.float64())
        kind = array.type
    if pa.types.is_duration(kind):
        whole, rest, missing = split_seconds(array)
        return np.where(missing, np.nan, whole + rest - origin)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_integer(kind) and origin:
        return _shifted(array, origin)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise wrong_type(name, kind, "numbers")
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return values - origin if origin else values


def _shifted(array: pa.Array, origin: int) -> np.ndarray:
    """``array - origin`` for integers of 64 bits, rounded once and never overflowing."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    high = (values >> 32).astype(np.int64) - (origin >> 32)
    low = (values & 0xFFFFFFFF).astype(np.int64) - (origin & 0xFFFFFFFF)
    return np.where(array.is_null(), np.nan, high.astype(np.float64) * 2.0**32 + low.astype(np.float64))


def booleans(array: pa.Array, name: str) -> np.ndarray:
    """Cells as 0.0 or 1.0, NaN where missing; the numbers 0 and 1 and the words true and false (any case) are read."""
    array = decoded(array)
    if is_text(array.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(array))
        true = pc.is_in(words, value_set=_text_array(TRUE_TEXT))
        false = pc.is_in(words, value_set=_text_array(FALSE_TEXT))
        check_readable(np.asarray(pc.or_(pc.or_(true, false), array.is_null())), array, name, "true or false")
        array = pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))
    values = numbers(array, name)
    check_readable((values == 0) | (values == 1) | np.isnan(values), array, name, "true or false")
    return values


def strings(array: pa.Array, name: str) -> pa.Array:
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
        raise unusable_type(name, str(kind)) from error


def looks_like(array: pa.Array, pattern: str) -> bool:
    """Whether every present value of a text column, once stripped, matches a regular expression."""
    return bool(pc.all(pc.match_substring_regex(pc.utf8_trim_whitespace(array), pattern), min_count=0).as_py())


def split_seconds(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Timestamps, times of day or durations as whole seconds, the rest of a second, and a mask of missing ones."""
    per = _PER_SECOND[array.type.unit]
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    counts = array.cast(width).fill_null(0).to_numpy().astype(np.int64)
    whole = counts // per
    return whole, (counts - whole * per) / per, np.asarray(array.is_null())


def check_readable(readable: np.ndarray, array: pa.Array, name: str, expected: str, example: str = "") -> None:
    """Raise if some cells of ``array`` are not readable; they should be ``expected``, such as ``example``."""
    if not readable.all():
        raise UnreadableCells(name, ~readable, array, expected, example)


def wrong_type(name: str, kind: pa.DataType, expected: str) -> DataError:
    """The error for a column whose type is not that of training."""
    return DataError(
        f"Column {name!r} should hold {expected} but holds {kind}. Convert it to the type it had in training."
    )
