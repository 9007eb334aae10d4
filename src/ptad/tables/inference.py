"""How the columns of a training table are read: their types, and the formats of what is written as text."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Option, SettingError
from ptad.tables.column_types import TYPES, Reading, few_or_many, type_of_array
from ptad.tables.date_format import COMPACT, DateFormats, are_days, check_format, infer_dates, iso_zone
from ptad.tables.datetime_column import whole_text
from ptad.tables.names import listed
from ptad.tables.notes import Note
from ptad.tables.number_format import (
    MOST_BAD,
    PLAIN,
    NumberFormat,
    NumberSigns,
    NumberTally,
    best_format,
    decide_signs,
)
from ptad.tables.values import CODE_TEXT, decoded, is_text, looks_like, without_missing


def check_types(types: Mapping[str, str]) -> None:
    """Raise if a chosen type is none; ``date`` and ``datetime`` may be followed by a colon and a format."""
    for name, given in types.items():
        type_, colon, form = str(given).partition(":")
        if type_ not in TYPES:
            raise SettingError(f"Column {name!r} cannot be of type {type_!r}. Choose one of: {', '.join(TYPES)}.")
        if colon and type_ not in ("date", "datetime"):
            raise SettingError(f"Column {name!r}: only date and datetime take a format. Write {type_}, not {given!r}.")
        if colon:
            check_format(form, name)


def read_columns(
    columns: Mapping[str, pa.Array],
    types: Mapping[str, str],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    semicolons: bool = False,
) -> tuple[dict[str, Reading], list[Note]]:
    """Decide how each column of a training table is read, from all its values, and what there is to say about that.

    Missing text is null in ``columns``. The user chose ``types`` such as "numeric" or "date:%d/%m/%Y". The other
    parameters are those of :func:`ptad.tables.number_format.decide_signs`.
    """
    check_types(types)
    texts = {name: pc.utf8_trim_whitespace(array.drop_null()) for name, array in columns.items() if is_text(array.type)}
    signs = _signs(
        {n: t for n, t in texts.items() if types.get(n, "numeric") == "numeric"},
        columns,
        decimal,
        thousands,
        semicolons,
    )
    notes: list[Note] = []
    readings = {}
    for name, array in columns.items():
        if name in types:
            readings[name] = _chosen(name, array, types[name], signs, notes)
        elif (type_ := type_of_array(name, array)) is None:
            readings[name] = _of_text(name, array, texts[name], signs, notes)
        else:
            readings[name] = _of_values(name, array, type_, signs, notes)
    return readings, [*_sign_notes(readings, signs, columns, decimal), *notes]


def _signs(
    texts: Mapping[str, pa.Array],
    columns: Mapping[str, pa.Array],
    decimal: str | None,
    thousands: str | None,
    semicolons: bool,
) -> NumberSigns:
    tallies = {}
    for name, text in texts.items():
        tallies[name] = NumberTally()
        tallies[name].add(text)
    if any(pa.types.is_floating(array.type) and _has_fractions(array) for array in columns.values()):
        tallies[""] = NumberTally()  # numbers that are numbers already have a point
        tallies[""].add(pa.array(["0.5"], pa.large_string()))
    return decide_signs(tallies, decimal, thousands, semicolons=semicolons)


def _has_points(array: pa.Array) -> bool:
    if pa.types.is_floating(array.type):
        return _has_fractions(array)
    return is_text(array.type) and bool(pc.any(pc.match_substring(array, ".")).as_py())


def _has_fractions(array: pa.Array) -> bool:
    return bool(pc.any(pc.and_(pc.is_finite(array), pc.not_equal(array, pc.floor(array)))).as_py())


def _chosen(name: str, array: pa.Array, given: str, signs: NumberSigns, notes: list[Note]) -> Reading:
    type_, colon, form = given.partition(":")
    if type_ in ("date", "datetime"):
        if colon:
            return Reading(type_, (form,))
        values = decoded(array)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return Reading(type_, (COMPACT,))
        if is_text(values.type) and iso_zone(values) is None:
            found = infer_dates(name, pc.utf8_trim_whitespace(values))
            if found is not None:
                notes += _date_notes(name, found)
                return Reading(type_, found.formats)
    numbers = _number_format(name, array, signs) if type_ == "numeric" else PLAIN
    if type_ == "numeric" and is_text((values := decoded(array)).type) and name not in signs.columns:
        text = pc.utf8_trim_whitespace(values.drop_null())  # too few numbers to be found without the user's word
        numbers = best_format(text) if len(text) and numbers.fits(text).mean() < 1.0 - MOST_BAD else numbers
    return Reading(type_, numbers=numbers)


def _of_values(name: str, array: pa.Array, type_: str, signs: NumberSigns, notes: list[Note]) -> Reading:
    if type_ == "numeric" and _are_days(name, array):
        notes.append(_days_note(name))
        return Reading("date", (COMPACT,))
    return Reading(type_, numbers=_number_format(name, array, signs) if type_ == "numeric" else PLAIN)


def _of_text(name: str, array: pa.Array, text: pa.Array, signs: NumberSigns, notes: list[Note]) -> Reading:
    if not len(text):
        return Reading("text")
    if are_days(name, text):
        notes.append(_days_note(name))
        return Reading("date", (COMPACT,))
    form = signs.columns.get(name, PLAIN)
    if form.fits(text).mean() >= 1.0 - MOST_BAD and not pc.any(pc.match_substring_regex(text, CODE_TEXT)).as_py():
        return Reading("numeric", numbers=_number_format(name, array, signs))
    if iso_zone(array) is not None:
        return Reading("datetime")
    found = infer_dates(name, text)
    if found is not None and found.share >= 1.0 - MOST_BAD:
        notes += _date_notes(name, found)
        return Reading(found.type, found.formats)
    type_ = few_or_many(array)
    if found is not None:
        text = (
            f"Column {name!r} looks like dates, but {1.0 - found.share:.0%} of its values cannot be read as "
            f"{' or '.join(found.formats)}: it is used as {type_}"
        )
        notes.append(Note(text, (Option("types", (name, f"{found.type}:{found.formats[0]}")),), True))
    return Reading(type_)


def _number_format(name: str, array: pa.Array, signs: NumberSigns) -> NumberFormat:
    """The signs of a column of numbers; those of the table where the column has none of its own to contradict them."""
    if name in signs.columns:
        return signs.columns[name]
    values = decoded(array)
    pointed = pa.types.is_floating(values.type) or (is_text(values.type) and not looks_like(values, r"^[+-]?\d+$"))
    return PLAIN if pointed and signs.table.decimal != "." else signs.table


def _are_days(name: str, array: pa.Array) -> bool:
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return False
    low, high = pc.min_max(without_missing(array, ())).as_py().values()
    if low is None or low < 1900_01_01 or high > 2100_12_31:  # a cheap sieve
        return False
    return are_days(name, whole_text(array).drop_null())


def _days_note(name: str) -> Note:
    return Note(f"Column {name!r} is read as dates ({COMPACT})", (Option("types", (name, "numeric")),))


def _date_notes(name: str, found: DateFormats) -> list[Note]:
    other = (Option("types", (name, f"{found.type}:{found.other_order if found.guessed else 'FORMAT'}")),)
    if found.guessed:
        text = f"Column {name!r}: no value says whether the day or the month comes first; read as {found.formats[0]}"
        return [Note(text, other, True)]
    if len(found.formats) > 1:
        listed = ", ".join(f"{form} ({n:,})" for form, n in zip(found.formats, found.counts, strict=True))
        return [Note(f"Column {name!r} has dates in {len(found.formats)} formats, all read: {listed}", other, True)]
    return [Note(f"Column {name!r} is read as dates in the format {found.formats[0]}", other)]


def _sign_notes(
    readings: Mapping[str, Reading], signs: NumberSigns, columns: Mapping[str, pa.Array], decimal: str | None
) -> list[Note]:
    numeric = {n: r.numbers for n, r in readings.items() if r.type == "numeric"}
    own = {n: form for n, form in numeric.items() if is_text(columns[n].type) and n in signs.columns}
    commas = any(form.decimal == "," for form in own.values())
    points = [n for n, form in numeric.items() if form.decimal == "." and _has_points(columns[n])] if commas else []
    notes = []
    for form in dict.fromkeys(own.values() if decimal is None else ()):
        names = [name for name, f in own.items() if f == form and name not in signs.guessed]
        text = f"Numbers have {form.words()}, such as {form.example()}: {listed(names, show=str)}"
        if names and form.decimal == "," and points:
            text += f"; but {listed(points, show=str)} {'has' if len(points) == 1 else 'have'} a decimal point"
        if names:
            notes.append(Note(text, (Option("decimal"), Option("thousands")), bool(points)))
    for name in signs.guessed:
        if name in own:
            what, other = ("decimal", ".") if own[name].decimal == "," else ("thousands", ",")
            value = columns[name].drop_null()[0].as_py()
            text = f"Column {name!r}: the comma in {value!r} is read as a {what} comma, by a guess"
            notes.append(Note(text, (Option("decimal", other),), True))
    return notes
