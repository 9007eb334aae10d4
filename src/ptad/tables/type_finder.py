"""The types of the columns of one or more files, found by looking at every value.

A streaming reader that guesses types from its first block fails on the first surprise, and turns the code 00501 into
the number 501. So text files are read twice: once to find for each column the narrowest type that holds all values, and
once to convert.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Message, Option
from ptad.tables.column_types import is_foreign
from ptad.tables.number_format import NumberTally, decide_signs
from ptad.tables.values import CODE_TEXT, is_text, looks_like

if TYPE_CHECKING:
    from ptad.tables.schema import Schema

logger = logging.getLogger("ptad")

TEXT = pa.large_string()
_WIDER = {
    None: (pa.bool_(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    pa.int64(): (pa.int64(), pa.float64()),
    pa.date32(): (pa.date32(), pa.timestamp("us")),
}
_TRUTHS = pa.array(["true", "false", "True", "False", "TRUE", "FALSE"], TEXT)


class TypeFinder:
    """One type per column that holds every value shown so far; text if no other does.

    Numbers with a decimal comma stay text, for the schema to read. So do numbers such as 1.234 in a table whose other
    columns have decimal commas: there it is more than a thousand.

    Parameters
    ----------
    fitted : Schema or None
        The schema of a model: its text stays text, as do cells that its columns could not hold otherwise.
    decimal, thousands : str or None
        The signs that the user chose for numbers in text.
    """

    def __init__(self, fitted: Schema | None, decimal: str | None, thousands: str | None) -> None:
        self._wanted = {} if fitted is None else fitted.types
        self._text = {name for name, type_ in self._wanted.items() if type_ in ("text", "categorical")}
        self._formatted = () if fitted is None else fitted.formatted
        self._chosen = (decimal, thousands)
        self._types: dict[str, pa.DataType] = {}
        self._narrowest: dict[str, pa.DataType | None] = {}  # of text
        self._tallies: dict[str, NumberTally] = {}
        self.semicolons = False  # whether they separate the cells of a file
        self.mixed: set[str] = set()  # columns that are taken as text, since no other type holds all their values

    def add(self, schema: pa.Schema) -> None:
        """Take the columns of a file that knows their types into account."""
        for field in schema:
            self._types[field.name] = self._common(field.name, self._types.get(field.name, pa.null()), field.type)

    def add_json(self, schema: pa.Schema) -> None:
        """Take a block of JSON into account; text of the model that it shows as numbers or dates stays text."""
        self.add(schema)
        for name, kind in zip(schema.names, schema.types, strict=True):
            odd = name in self._text and not (is_text(kind) or pa.types.is_null(kind))
            if odd or is_foreign(self._wanted.get(name), kind):
                self.mixed.add(name)

    def add_text(self, batch: pa.RecordBatch) -> None:
        """Take the values of a batch of text into account."""
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            stays = name in self._text or name in self._formatted
            known = self._narrowest.setdefault(name, TEXT if stays else None)
            if stays or array.null_count == len(array):
                continue
            if known != TEXT:
                known = next((t for t in _WIDER.get(known, (known,)) if _holds(array, t)), TEXT)
                self._narrowest[name] = known
            tally = self._tallies.setdefault(name, NumberTally())
            if pa.types.is_integer(known):
                tally.add_whole(len(array) - array.null_count)
            else:
                tally.add(pc.utf8_trim_whitespace(array.drop_null()), plain=pa.types.is_floating(known))

    def found(self, label: str) -> pa.Schema:
        """The columns and their types, after all files were seen; a column without any value is null.

        A warning says that numbers of the model have another decimal sign here: they would all be unreadable.
        """
        signs = decide_signs(self._tallies, *self._chosen, semicolons=self.semicolons).columns
        commas = [name for name, form in signs.items() if form.decimal == ","]
        for name, narrowest in self._narrowest.items():
            kind = TEXT if name in commas else narrowest or pa.null()
            kind = TEXT if is_foreign(self._wanted.get(name), kind) else kind
            self._types[name] = self._common(name, self._types.get(name, pa.null()), kind)
        if odd := [name for name in commas if self._wanted.get(name) == "numeric"]:
            names = ", ".join(map(repr, odd[:10]))
            text = f"{label}: numbers of {names} have a decimal comma, and the model's have a decimal point."
            logger.warning(Message(text, "Give {}.", (Option("decimal", ","),), "Write them with a decimal point."))
        return pa.schema([(name, TEXT if name in self.mixed else kind) for name, kind in self._types.items()])

    def _common(self, name: str, known: pa.DataType, kind: pa.DataType) -> pa.DataType:
        """One type for a column that has several in different files or blocks."""
        if known == kind or pa.types.is_null(kind):
            return known
        if pa.types.is_null(known):
            return kind
        parts = [pa.schema([(name, _unpacked(k))]) for k in (known, kind)]
        try:
            return pa.unify_schemas(parts, promote_options="permissive").field(0).type
        except pa.ArrowException:
            self.mixed.add(name)
            return TEXT


def converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of a file converted to the type that was found."""
    if kind == array.type:
        return array
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if not is_text(array.type) or is_text(kind):
        return array.cast(kind)
    if pa.types.is_date(kind) and not looks_like(array, r"^\d{4}-\d{2}-\d{2}$"):
        raise pa.ArrowInvalid("not a date")
    return pc.cast(pc.utf8_trim_whitespace(array), kind)


def _holds(array: pa.Array, kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):  # 0 and 1 are numbers here
        return bool(pc.all(pc.is_in(array.drop_null(), value_set=_TRUTHS)).as_py())
    try:
        converted(array, kind)
    except pa.ArrowInvalid:
        return False
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return True
    zeros = array.filter(pc.starts_with(array, "0"))  # a cheap sieve before the regular expression
    return len(zeros) == 0 or not pc.any(pc.match_substring_regex(zeros, CODE_TEXT)).as_py()


def _unpacked(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return TEXT if pa.types.is_string(kind) else kind
