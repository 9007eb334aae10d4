"""Cells of one Arrow column read as numbers, truth values or text, each cell on its own.

A column whose type differs from the one seen in training is converted where nothing is lost. Cells that cannot be read
are an error with the cells as a field: whoever encodes decides whether they count as missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, Option
from ptad.tables.bad_cells import UnreadableCells
from ptad.tables.number_format import PLAIN, NumberFormat

CODE_TEXT = r"^[+-]?0\d"  # 00501 is a code, not the number 501
TRUE_TEXT, FALSE_TEXT = ("true", "1"), ("false", "0")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def unusable_type(name: str, what: str) -> DataError:
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


def cleaned(batch: pa.RecordBatch, missing: Sequence[str]) -> pa.RecordBatch:
    """A batch with text that equals one of ``missing`` turned into nulls."""
    columns = [without_named(column, missing) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def numbers(
    array: pa.Array, name: str, origin: int = 0, form: NumberFormat = PLAIN, what: str = "a number"
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
        refuse(~form.fits(text), array, name, what, "" if form.is_plain else form.example())
        plain = form.plain(text)
        array = _exact(plain) if origin else pc.cast(plain, pa.float64())
        kind = array.type
    if pa.types.is_duration(kind):
        whole, rest, missing = ticks(array)
        return np.where(missing, np.nan, whole + rest - origin)
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_integer(kind) and origin:
        return _shifted(array, origin)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise changed(name, kind, "numbers")
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return values - origin if origin else values


def _exact(text: pa.Array) -> pa.Array:
    """Text as integers where all of it is: a bad cell in the column, which made it text, changes no digit of others."""
    try:
        return pc.cast(text, pa.int64())
    except pa.ArrowInvalid:
        return pc.cast(text, pa.float64())


def _shifted(array: pa.Array, origin: int) -> np.ndarray:
    """``array - origin`` for integers of 64 bits, rounded once and never overflowing."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    high = (values >> 32).astype(np.int64) - (origin >> 32)
    low = (values & 0xFFFFFFFF).astype(np.int64) - (origin & 0xFFFFFFFF)
    return np.where(array.is_null(), np.nan, high.astype(np.float64) * 2.0**32 + low.astype(np.float64))


def truths(array: pa.Array, name: str) -> np.ndarray:
    """Cells as 0.0 or 1.0; the numbers 0 and 1 and the words true and false (any case) count as such."""
    array = decoded(array)
    if is_text(array.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(array))
        true = pc.is_in(words, value_set=pa.array(TRUE_TEXT, pa.large_string()))
        false = pc.is_in(words, value_set=pa.array(FALSE_TEXT, pa.large_string()))
        refuse(~np.asarray(pc.or_(pc.or_(true, false), array.is_null())), array, name, "true or false")
        array = pc.if_else(array.is_valid(), true, pa.scalar(None, pa.bool_()))
    values = numbers(array, name)
    refuse(~((values == 0) | (values == 1) | np.isnan(values)), array, name, "true or false")
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
        raise unusable_type(name, str(kind)) from error


def looks_like(array: pa.Array, pattern: str) -> bool:
    """Whether every present value of a text column, once stripped, has the form of ``pattern``."""
    return bool(pc.all(pc.match_substring_regex(pc.utf8_trim_whitespace(array), pattern), min_count=0).as_py())


def ticks(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Timestamps, times of day or durations as whole seconds, the rest of a second, and a mask of missing ones."""
    per = _PER_SECOND[array.type.unit]
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    counts = array.cast(width).fill_null(0).to_numpy().astype(np.int64)
    whole = counts // per
    return whole, (counts - whole * per) / per, np.asarray(array.is_null())


def refuse(bad: np.ndarray, array: pa.Array, name: str, what: str, form: str = "") -> None:
    """Raise if some cells are bad: those of ``array``, which should be what ``what`` says, such as ``form``."""
    if bad.any():
        raise UnreadableCells(name, bad, array, what, form)


def changed(name: str, kind: pa.DataType, wanted: str) -> DataError:
    """The error for a column whose type is not that of training."""
    return DataError(
        f"Column {name!r} should hold {wanted} but holds {kind}. Convert it to the type it had in training."
    )
