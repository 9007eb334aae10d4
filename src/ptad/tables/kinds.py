"""What a column is: its kind, and whether it is worth keeping.

=========== ==================================================================================================
kind        columns
=========== ==================================================================================================
number      integers, floats, decimals; text in which at least 95 % of the values read as a number ("3", "2.5e-1"),
            unless a value has the leading zero of a code ("00501")
boolean     truth values
category    text and declared categories with at most 100 different values that repeat: at most ten values, or each
            value on average at least twice; mixed columns of numbers and text count as text
text        all other text
datetime    timestamps; text in which at least 95 % of the values are ISO 8601 dates or date-times
date, time  calendar days, times of day
duration    differences of times
=========== ==================================================================================================

Nested columns (lists, structs, maps) and binary ones are refused.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.category_column import CategoryColumn
from ptad.tables.moment_column import MomentColumn
from ptad.tables.number_column import NumberColumn
from ptad.tables.text_column import TextColumn
from ptad.tables.values import (
    CODE_TEXT,
    NAIVE_TEXT,
    NUMBER_TEXT,
    ZONED_TEXT,
    decoded,
    is_text,
    looks_like,
    refused,
    share_like,
)

Column = NumberColumn | CategoryColumn | TextColumn | MomentColumn

KINDS: dict[str, type[Column]] = {
    "number": NumberColumn,
    "boolean": NumberColumn,
    "duration": NumberColumn,
    "category": CategoryColumn,
    "text": TextColumn,
    "datetime": MomentColumn,
    "date": MomentColumn,
    "time": MomentColumn,
}

# 100 keeps one-hot what public benchmark tables one-hot (the widest has 70 values); more would dwarf the rest.
MOST_CATEGORIES = 100
FEW_CATEGORIES = 10
CONSTANT = "constant: "  # a reason to leave a column out; what follows is its one value
MOST_BAD = 0.05  # share of values that cannot be read up to which a column of text is still one of numbers or dates
IDENTIFIER_ROWS = 20  # fewer distinct values than this prove nothing


def detect_kind(name: str, array: pa.Array) -> str:
    """The kind of a training column, from its Arrow type and its values."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        detect_kind(name, decoded(array))  # refuses what cannot be a value
        return _few_or_many(decoded(array))
    if is_text(kind):
        return _kind_of_text(array)
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
        return "number"
    raise refused(name, str(kind))


def is_foreign(kind: str | None, found: pa.DataType) -> bool:
    """Whether text was taken for another type than a column of this kind has: as text, its cells cannot be read.

    Otherwise a cell would be refused with its column where all cells are alike, and count as missing beside others.
    """
    if kind in ("datetime", "date", "time"):
        return bool(pa.types.is_boolean(found) or pa.types.is_integer(found) or pa.types.is_floating(found))
    if kind in ("number", "boolean", "duration"):
        odd = pa.types.is_temporal(found) and not pa.types.is_duration(found)
        return bool(odd or (kind == "number" and pa.types.is_boolean(found)))
    return False


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
    return _kind_of_text(values) == "datetime"


def _kind_of_text(array: pa.Array) -> str:
    if array.null_count == len(array):
        return "text"
    likely, share = likely_kind(array)
    return likely if share >= 1.0 - MOST_BAD else _few_or_many(array)


def likely_kind(array: pa.Array) -> tuple[str, float]:
    """What most values of a text column read as, "number" or "datetime", and the share that does."""
    is_code = pc.any(pc.match_substring_regex(array, CODE_TEXT)).as_py()
    found = {"number": 0.0 if is_code else share_like(array, NUMBER_TEXT), "datetime": 0.0}
    if found["number"] < 0.5:
        found["datetime"] = max(share_like(array, NAIVE_TEXT, "us"), share_like(array, ZONED_TEXT, "us", "UTC"))
    return max(found.items(), key=lambda pair: pair[1])


def _few_or_many(values: pa.Array) -> str:
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    present = len(values) - values.null_count
    few = distinct <= MOST_CATEGORIES and (distinct <= FEW_CATEGORIES or 2 * distinct <= present)
    return "category" if few else "text"
