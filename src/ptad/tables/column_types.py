"""What a column is: its type, and whether it is worth keeping.

=========== ==================================================================================================
type        columns
=========== ==================================================================================================
numeric     integers, floats, decimals; text in which every value reads as a number ("3", "2.5e-1"), unless a value has
            the leading zero of a code ("00501")
boolean     truth values
categorical text and declared categories with at most 100 different values that repeat: at most ten values, or each
            value on average at least twice; mixed columns of numbers and text count as text
text        all other text
datetime    timestamps; text in which every value is an ISO 8601 date or date-time
date, time  calendar days, times of day
duration    differences of times
=========== ==================================================================================================

Nested columns (lists, structs, maps) and binary ones are refused.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.categorical_column import CategoricalColumn
from ptad.tables.datetime_column import DatetimeColumn
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.text_column import TextColumn
from ptad.tables.values import CODE_TEXT, NAIVE_TEXT, NUMBER_TEXT, ZONED_TEXT, decoded, is_text, looks_like, refused

Column = NumericColumn | CategoricalColumn | TextColumn | DatetimeColumn

TYPES: dict[str, type[Column]] = {
    "numeric": NumericColumn,
    "boolean": NumericColumn,
    "duration": NumericColumn,
    "categorical": CategoricalColumn,
    "text": TextColumn,
    "datetime": DatetimeColumn,
    "date": DatetimeColumn,
    "time": DatetimeColumn,
}

# 100 keeps one-hot what public benchmark tables one-hot (the widest has 70 values); more would dwarf the rest.
MOST_CATEGORIES = 100
FEW_CATEGORIES = 10
CONSTANT = "constant: "  # a reason to leave a column out; what follows is its one value
IDENTIFIER_ROWS = 20  # fewer distinct values than this prove nothing


def detect_type(name: str, array: pa.Array) -> str:
    """The type of a training column, from its Arrow type and its values."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        detect_type(name, decoded(array))  # refuses what cannot be a value
        return _few_or_many(decoded(array))
    if is_text(kind):
        return _type_of_text(array)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "datetime"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_duration(kind):
        return "duration"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return "numeric"
    raise refused(name, str(kind))


def reason_to_leave_out(array: pa.Array, *, identifiers: bool) -> str | None:
    """Why a training column tells nothing, or None if it is worth keeping.

    ``identifiers=False`` keeps whatever has a value: also a column in which all values are different, or the same.
    """
    present = len(array) - array.null_count
    if not present:
        return "all values are missing"
    if not identifiers:
        return None
    values = decoded(array)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        low, high = pc.min_max(values).as_py().values()
        return f"{CONSTANT}{low!r}" if low == high else None
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    if distinct == 1:
        value = values.drop_null()[0].as_py()
        return f"{CONSTANT}{value!r}" if isinstance(value, str | int) else f"{CONSTANT}{value}"
    countable = is_text(values.type) or pa.types.is_integer(values.type)
    if countable and distinct == present >= IDENTIFIER_ROWS and not _is_fractional_text(values):
        return "identifier: every value is different"
    return None


def _is_fractional_text(values: pa.Array) -> bool:
    # floats and moments written as text are measurements, not identifiers
    if not is_text(values.type):
        return False
    if looks_like(values, NUMBER_TEXT):
        return not looks_like(values, r"^[+-]?\d+$")
    return _type_of_text(values) == "datetime"


def _type_of_text(array: pa.Array) -> str:
    if array.null_count == len(array):
        return "text"
    if looks_like(array, NUMBER_TEXT) and not pc.any(pc.match_substring_regex(array, CODE_TEXT)).as_py():
        return "numeric"
    for pattern, zone in ((NAIVE_TEXT, None), (ZONED_TEXT, "UTC")):
        if looks_like(array, pattern):
            try:
                pc.cast(pc.utf8_trim_whitespace(array), pa.timestamp("us", zone))
            except pa.ArrowInvalid:  # 2024-02-31 has the form of a date and is none
                break
            return "datetime"
    return _few_or_many(array)


def _few_or_many(values: pa.Array) -> str:
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    present = len(values) - values.null_count
    few = distinct <= MOST_CATEGORIES and (distinct <= FEW_CATEGORIES or 2 * distinct <= present)
    return "categorical" if few else "text"
