"""Inference of column types, and of the formats of dates and numbers in text, from a training table."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Option, SettingError
from ptad.tables.column_types import TYPES, Reading, categorical_or_text, type_of_array
from ptad.tables.date_format import COMPACT, DateFormats, are_days, check_format, infer_dates, iso_zone
from ptad.tables.datetime_column import integers_to_text
from ptad.tables.names import listed
from ptad.tables.notes import Note
from ptad.tables.number_format import (
    MOST_BAD,
    PLAIN,
    WHOLE_TEXT,
    FormatCounts,
    NumberFormat,
    TableFormats,
    best_format,
    decide_formats,
)
from ptad.tables.values import CODE_TEXT, decoded, is_text, looks_like, without_missing


def check_types(types: Mapping[str, str]) -> None:
    """Raise for an unknown type; ``date`` and ``datetime`` may be followed by a colon and a format."""
    for name, chosen in types.items():
        type_, colon, form = str(chosen).partition(":")
        if type_ not in TYPES:
            raise SettingError(f"Column {name!r} cannot be of type {type_!r}. Choose one of: {', '.join(TYPES)}.")
        if colon and type_ not in ("date", "datetime"):
            raise SettingError(f"Column {name!r}: only date and datetime take a format. Write {type_}, not {chosen!r}.")
        if colon:
            check_format(form, name)


def infer_readings(
    columns: Mapping[str, pa.Array],
    types: Mapping[str, str],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    semicolons: bool = False,
) -> tuple[dict[str, Reading], list[Note]]:
    """Infer how each column of a training table is read, from all its values.

    Missing text is null in ``columns``. ``types`` are those that the user chose, such as "numeric" or "date:%d/%m/%Y".
    The other parameters are those of :func:`ptad.tables.number_format.decide_formats`.

    Returns the readings, and notes on what the user should know about them.
    """
    check_types(types)
    texts = {name: pc.utf8_trim_whitespace(array.drop_null()) for name, array in columns.items() if is_text(array.type)}
    counts = {name: FormatCounts() for name in texts if types.get(name, "numeric") == "numeric"}
    for name, count in counts.items():
        count.add(texts[name])
    if any(pa.types.is_floating(array.type) and _has_points(array) for array in columns.values()):
        counts[""] = FormatCounts()  # columns of floats vote for the decimal point
        counts[""].add(pa.array(["0.5"], pa.large_string()))
    formats = decide_formats(counts, decimal, thousands, semicolons=semicolons)
    notes: list[Note] = []
    readings = {}
    for name, array in columns.items():
        if name in types:
            readings[name] = _chosen_reading(name, array, types[name], formats, notes)
        elif (type_ := type_of_array(name, array)) is None:
            readings[name] = _reading_of_text(name, array, texts[name], formats, notes)
        elif type_ == "numeric" and _are_integer_days(name, array):
            readings[name] = _days(name, notes)
        else:
            readings[name] = Reading(
                type_, numbers=_number_format(name, array, formats) if type_ == "numeric" else PLAIN
            )
    return readings, [*_number_notes(readings, formats, columns, decimal), *notes]


def _has_points(array: pa.Array) -> bool:
    """Whether a value has a decimal point, or is a float with a fraction."""
    if pa.types.is_floating(array.type):
        return bool(pc.any(pc.and_(pc.is_finite(array), pc.not_equal(array, pc.floor(array)))).as_py())
    return is_text(array.type) and bool(pc.any(pc.match_substring(array, ".")).as_py())


def _chosen_reading(name: str, array: pa.Array, chosen: str, formats: TableFormats, notes: list[Note]) -> Reading:
    """The reading of a column whose type the user chose."""
    type_, colon, form = chosen.partition(":")
    if type_ in ("date", "datetime"):
        if colon:
            return Reading(type_, (form,))
        values = decoded(array)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return Reading(type_, (COMPACT,))
        if is_text(values.type) and iso_zone(values) is None:
            dates = infer_dates(name, pc.utf8_trim_whitespace(values))
            if dates is not None:
                notes.append(_date_note(name, dates))
                return Reading(type_, dates.formats)
    numbers = _number_format(name, array, formats) if type_ == "numeric" else PLAIN
    if type_ == "numeric" and is_text((values := decoded(array)).type) and name not in formats.columns:
        text = pc.utf8_trim_whitespace(values.drop_null())  # perhaps too few numbers for a column that is not chosen
        numbers = best_format(text) if len(text) and numbers.matches(text).mean() < 1.0 - MOST_BAD else numbers
    return Reading(type_, numbers=numbers)


def _reading_of_text(name: str, array: pa.Array, text: pa.Array, formats: TableFormats, notes: list[Note]) -> Reading:
    if not len(text):
        return Reading("text")
    if are_days(name, text):
        return _days(name, notes)
    form = formats.columns.get(name, PLAIN)
    if form.matches(text).mean() >= 1.0 - MOST_BAD and not pc.any(pc.match_substring_regex(text, CODE_TEXT)).as_py():
        return Reading("numeric", numbers=_number_format(name, array, formats))
    if iso_zone(array) is not None:
        return Reading("datetime")
    dates = infer_dates(name, text)
    if dates is not None and dates.share >= 1.0 - MOST_BAD:
        notes.append(_date_note(name, dates))
        return Reading(dates.type, dates.formats)
    type_ = categorical_or_text(array)
    if dates is not None:
        message = (
            f"Column {name!r} looks like dates, but {1.0 - dates.share:.0%} of its values cannot be read as "
            f"{' or '.join(dates.formats)}: it is used as {type_}"
        )
        notes.append(Note(message, (Option("types", (name, f"{dates.type}:{dates.formats[0]}")),), True))
    return Reading(type_)


def _number_format(name: str, array: pa.Array, formats: TableFormats) -> NumberFormat:
    """The format of a column of numbers: that of the table, unless its own values have another one."""
    if name in formats.columns:
        return formats.columns[name]
    values = decoded(array)
    has_points = pa.types.is_floating(values.type) or (is_text(values.type) and not looks_like(values, WHOLE_TEXT))
    return PLAIN if has_points and formats.table.decimal != "." else formats.table


def _are_integer_days(name: str, array: pa.Array) -> bool:
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return False
    low, high = pc.min_max(without_missing(array, ())).as_py().values()
    if low is None or low < 1900_01_01 or high > 2100_12_31:  # cheaper than the conversion to text
        return False
    return are_days(name, integers_to_text(array).drop_null())


def _days(name: str, notes: list[Note]) -> Reading:
    """The reading of eight digits as dates."""
    notes.append(Note(f"Column {name!r} is read as dates ({COMPACT})", (Option("types", (name, "numeric")),)))
    return Reading("date", (COMPACT,))


def _date_note(name: str, dates: DateFormats) -> Note:
    exchanged = dates.formats[0].translate(str.maketrans("dm", "md"))  # day and month
    other = (Option("types", (name, f"{dates.type}:{exchanged if dates.guessed else 'FORMAT'}")),)
    if dates.guessed:
        text = f"Column {name!r}: no value says whether the day or the month comes first; read as {dates.formats[0]}"
        return Note(text, other, True)
    if len(dates.formats) > 1:
        counts = ", ".join(f"{form} ({n:,})" for form, n in zip(dates.formats, dates.counts, strict=True))
        return Note(f"Column {name!r} has dates in {len(dates.formats)} formats, all read: {counts}", other, True)
    return Note(f"Column {name!r} is read as dates in the format {dates.formats[0]}", other)


def _number_notes(
    readings: Mapping[str, Reading], formats: TableFormats, columns: Mapping[str, pa.Array], decimal: str | None
) -> list[Note]:
    numeric = {n: r.numbers for n, r in readings.items() if r.type == "numeric"}
    in_text = {n: form for n, form in numeric.items() if is_text(columns[n].type) and n in formats.columns}
    commas = any(form.decimal == "," for form in in_text.values())
    points = [n for n, form in numeric.items() if form.decimal == "." and _has_points(columns[n])] if commas else []
    notes = []
    for form in dict.fromkeys(in_text.values() if decimal is None else ()):
        names = [name for name, f in in_text.items() if f == form and name not in formats.guessed]
        text = f"Numbers have {form.describe()}, such as {form.example()}: {listed(names, show=str)}"
        if names and form.decimal == "," and points:
            text += f"; but {listed(points, show=str)} {'has' if len(points) == 1 else 'have'} a decimal point"
        if names:
            notes.append(Note(text, (Option("decimal"), Option("thousands")), bool(points)))
    for name in formats.guessed:
        if name in in_text:
            what, other = ("decimal", ".") if in_text[name].decimal == "," else ("thousands", ",")
            value = columns[name].drop_null()[0].as_py()
            text = f"Column {name!r}: the comma in {value!r} is read as a {what} comma; this is a guess"
            notes.append(Note(text, (Option("decimal", other),), True))
    return notes
