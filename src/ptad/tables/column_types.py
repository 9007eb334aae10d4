"""What a column is: its type, and whether it is worth keeping.

=========== ==================================================================================================
type        columns
=========== ==================================================================================================
numeric     integers, floats, decimals; text in which at least 95 % of the values read as a number ("3", "2.5e-1",
            "1.234,56"), unless a value has the leading zero of a code ("00501")
boolean     truth values
categorical text and declared categories with at most 100 different values that repeat: at most ten values, or each
            value on average at least twice; mixed columns of numbers and text count as text
text        all other text
datetime    timestamps; text in which at least 95 % of the values are date-times, in ISO 8601 or as people write them
date, time  calendar days, times of day
duration    differences of times
=========== ==================================================================================================

Nested columns (lists, structs, maps) and binary ones are refused.

An encoder is fitted to the training cells of one column (``fit``). It turns cells into features (``raw``), which have
names (``labels``), and back (``decode``). A schema keeps it as plain types (``to_json``, ``from_json``, ``layout``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.datetime_column import DatetimeColumn
from ptad.tables.number_format import PLAIN, WHOLE_TEXT, NumberFormat
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.text_columns import CategoricalColumn, TextColumn
from ptad.tables.values import decoded, is_text, looks_like, unusable_type

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
CONSTANT = "constant: "  # a reason to exclude a column; what follows is its one value
IDENTIFIER_ROWS = 20  # fewer distinct values than this prove nothing
IN_ORDER = 0.75  # share of rows above or below the one before them from which on integers count up or down
SKEWED = (
    5.0  # largest value over the median, both above the smallest: 2 for numbers drawn from a range, more for amounts
)
DENSE = 3.0  # median distance of neighbouring values up to which integers are numbered through
MOMENTS = ("datetime", "date", "time")


@dataclass(frozen=True)
class Reading:
    """How a column is read: its type, the date formats of its text (none: ISO 8601), the signs in its numbers."""

    type: str
    formats: tuple[str, ...] = ()
    numbers: NumberFormat = PLAIN

    def fit(self, name: str, array: pa.Array) -> Column:
        """Fit the encoder of a training column."""
        encoder = TYPES[self.type]
        if encoder is NumericColumn:
            return NumericColumn.fit(name, self.type, array, self.numbers)
        if encoder is DatetimeColumn:
            return DatetimeColumn.fit(name, self.type, array, self.formats)
        return encoder.fit(name, self.type, array)


def type_of_array(name: str, array: pa.Array) -> str | None:
    """The type of a training column by its Arrow type; None for text, which its values decide about."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        type_of_array(name, decoded(array))  # refuses what cannot be a value
        return few_or_many(decoded(array))
    if is_text(kind):
        return None
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
    raise unusable_type(name, str(kind))


def few_or_many(values: pa.Array) -> str:
    """Whether text has few enough values that repeat to be categories."""
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    present = len(values) - values.null_count
    few = distinct <= MOST_CATEGORIES and (distinct <= FEW_CATEGORIES or 2 * distinct <= present)
    return "categorical" if few else "text"


def is_foreign(type_: str | None, found: pa.DataType) -> bool:
    """Whether text was taken for another type than a column of this type has: as text, its cells cannot be read.

    Otherwise a cell would be refused with its column where all cells are alike, and count as missing beside others.
    """
    if type_ in MOMENTS:
        return bool(pa.types.is_boolean(found) or pa.types.is_integer(found) or pa.types.is_floating(found))
    if type_ in ("numeric", "boolean", "duration"):
        odd = pa.types.is_temporal(found) and not pa.types.is_duration(found)
        return bool(odd or (type_ == "numeric" and pa.types.is_boolean(found)))
    return False


def reason_to_exclude(array: pa.Array, reading: Reading, *, identifiers: bool) -> str | None:
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
    if pc.count_distinct(values, mode="only_valid").as_py() == 1:
        value = values.drop_null()[0].as_py()
        return f"{CONSTANT}{value!r}" if isinstance(value, str | int) else f"{CONSTANT}{value}"
    countable = is_text(values.type) or pa.types.is_integer(values.type)
    if countable and are_all_different(values) and not _is_measured(values, reading):
        return "identifier: every value is different"
    return None


def are_all_different(values: pa.Array) -> bool:
    """Whether all present values differ, and there are enough of them to mean something."""
    present = len(values) - values.null_count
    return bool(present >= IDENTIFIER_ROWS and pc.count_distinct(values, mode="only_valid").as_py() == present)


def _is_measured(values: pa.Array, reading: Reading) -> bool:
    """Whether values are no identifiers even if all are different.

    Moments are none, nor is text with fractions or thousands, nor integers such as :func:`are_amounts` tells.
    """
    if reading.type in MOMENTS or (pa.types.is_integer(values.type) and are_amounts(values)):
        return True
    signs = reading.type == "numeric" and is_text(values.type)
    return signs and (not reading.numbers.is_plain or not looks_like(values, WHOLE_TEXT))


def are_amounts(values: pa.Array) -> bool:
    """Whether integers that are all different are amounts, such as incomes or sizes of files, and no identifiers.

    Identifiers count up in the order of the rows, are numbered through, or are spread over a range. Amounts are far
    apart, in no order, and few of them are much larger than most. What is none of this is taken for an identifier.
    """
    in_rows = values.drop_null().to_numpy().astype(np.float64)
    rising = float(np.mean(np.diff(in_rows) > 0))
    above = np.sort(in_rows) - in_rows.min()
    skewed = above[-1] > SKEWED * np.median(above) and np.median(np.diff(above)) > DENSE
    return bool(skewed and 1.0 - IN_ORDER < rising < IN_ORDER)
