"""The types of columns, and which columns are excluded.

=========== ==================================================================================================
type        columns
=========== ==================================================================================================
numeric     integers, floats, decimals; text in which at least 95 % of the values are numbers ("3", "2.5e-1",
            "1.234,56"), unless a value has the leading zero of a code ("00501")
boolean     booleans
categorical text and declared categories with at most 100 different values that repeat: at most ten values, or each
            value on average at least twice; mixed columns of numbers and text count as text
text        all other text
datetime    timestamps; text in which at least 95 % of the values are date-times, in ISO 8601 or other formats
date, time  calendar days, times of day
duration    differences of times
=========== ==================================================================================================

Nested columns (lists, structs, maps) and binary ones are an error.

An encoder is fitted to the training cells of one column (``fit``). It converts cells to features (``raw``), which have
names (``labels``), and back (``decode``). A schema stores it as JSON (``to_json``, ``from_json``, ``layout``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.datetime_column import DatetimeColumn
from ptad.tables.exclusion import Exclusion
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

# Public benchmark tables have categories of up to 70 values; one-hot groups of many more would outweigh other columns.
MOST_CATEGORIES = 100
FEW_CATEGORIES = 10
IDENTIFIER_ROWS = 20  # with fewer values, identifiers cannot be told from others
IN_ORDER = 0.75  # minimum share of rows above, or below, the previous one for integers that count up, or down
# Minimum ratio of the largest value to the median, both minus the smallest, for amounts; it is 2 for uniform numbers.
SKEWED = 5.0
DENSE = 3.0  # largest median distance of neighbouring values for consecutive numbers
MOMENTS = ("datetime", "date", "time")
_ARROW_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_timestamp, "datetime"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_integer, "numeric"),
    (pa.types.is_floating, "numeric"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_null, "numeric"),
)


@dataclass(frozen=True)
class Reading:
    """How a column is read: its type, the date formats of its text (none: ISO 8601), its number format."""

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
    """The column type for the Arrow type of a training column; None for text, whose values decide."""
    if pa.types.is_dictionary(array.type):
        type_of_array(name, decoded(array))  # raises for values that cannot be used
        return categorical_or_text(decoded(array))
    if is_text(array.type):
        return None
    for is_type, type_ in _ARROW_TYPES:
        if is_type(array.type):
            return type_
    raise unusable_type(name, str(array.type))


def categorical_or_text(values: pa.Array) -> str:
    """The column type of text: categorical if it has few values that repeat."""
    distinct = pc.count_distinct(values, mode="only_valid").as_py()
    present = len(values) - values.null_count
    few = distinct <= MOST_CATEGORIES and (distinct <= FEW_CATEGORIES or 2 * distinct <= present)
    return "categorical" if few else "text"


def is_incompatible(type_: str | None, inferred: pa.DataType) -> bool:
    """Whether the Arrow type inferred for the text of a file is not one of this column type.

    Such a column stays text, whose unreadable cells count as missing. With the inferred type the whole column would be
    an error if all of its cells are alike.
    """
    if type_ in MOMENTS:
        return bool(pa.types.is_boolean(inferred) or pa.types.is_integer(inferred) or pa.types.is_floating(inferred))
    if type_ in ("numeric", "boolean", "duration"):
        is_moment = pa.types.is_temporal(inferred) and not pa.types.is_duration(inferred)
        return bool(is_moment or (type_ == "numeric" and pa.types.is_boolean(inferred)))
    return False


def reason_to_exclude(array: pa.Array, reading: Reading, *, identifiers: bool) -> Exclusion | None:
    """Why a training column is excluded, or None.

    With ``identifiers=False`` only columns without any value are; otherwise also constants and identifiers.
    """
    present = len(array) - array.null_count
    if not present:
        return Exclusion("empty")
    if not identifiers:
        return None
    values = decoded(array)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        low, high = pc.min_max(values).as_py().values()
        return Exclusion.constant(low) if low == high else None
    if pc.count_distinct(values, mode="only_valid").as_py() == 1:
        return Exclusion.constant(values.drop_null()[0].as_py())
    countable = is_text(values.type) or pa.types.is_integer(values.type)
    if countable and are_all_different(values) and not _is_measured(values, reading):
        return Exclusion("identifier")
    return None


def are_all_different(values: pa.Array) -> bool:
    """Whether all present values differ, and there are enough of them to look like identifiers."""
    present = len(values) - values.null_count
    return bool(present >= IDENTIFIER_ROWS and pc.count_distinct(values, mode="only_valid").as_py() == present)


def _is_measured(values: pa.Array, reading: Reading) -> bool:
    """Whether values that are all different are dates, amounts or numbers with signs in text, and not identifiers."""
    if reading.type in MOMENTS or (pa.types.is_integer(values.type) and are_amounts(values)):
        return True
    is_number_text = reading.type == "numeric" and is_text(values.type)
    return is_number_text and (not reading.numbers.is_plain or not looks_like(values, WHOLE_TEXT))


def are_amounts(values: pa.Array) -> bool:
    """Whether integers that are all different are amounts, such as incomes or sizes of files, and no identifiers.

    Identifiers increase in the order of the rows, are consecutive, or are spread over a range. Amounts are far apart,
    in no order, and a few of them are much larger than most. In doubt integers are identifiers.
    """
    numbers = values.drop_null().to_numpy().astype(np.float64)
    rising = float(np.mean(np.diff(numbers) > 0))
    above = np.sort(numbers) - numbers.min()
    skewed = above[-1] > SKEWED * np.median(above) and np.median(np.diff(above)) > DENSE
    return bool(skewed and 1.0 - IN_ORDER < rising < IN_ORDER)
