"""Inference of one Arrow type per column of one or more files, from all values.

The readers of Arrow infer types from their first block, fail on a later value of another type, and turn the code 00501
into the number 501. So text files are read twice: once to find the narrowest type of every column that holds all its
values, and once to convert them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Message, Option
from ptad.tables.column_types import is_incompatible
from ptad.tables.names import listed
from ptad.tables.number_format import FormatCounts, decide_formats
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
_BOOLEANS = pa.array(["true", "false", "True", "False", "TRUE", "FALSE"], TEXT)


class TypeInference:
    """The narrowest type of every column that holds all values so far; text if no other does.

    Numbers with a decimal comma stay text, for the schema to read. So do numbers such as 1.234 in a table whose other
    columns have decimal commas: there it is more than a thousand. With the schema of a model, ``fitted``, its text
    stays text, and so do columns whose inferred type is not one of their column type.
    """

    def __init__(self, fitted: Schema | None, decimal: str | None, thousands: str | None) -> None:
        self._column_types = {} if fitted is None else fitted.types
        self._text = {name for name, type_ in self._column_types.items() if type_ in ("text", "categorical")}
        self._formatted = () if fitted is None else fitted.formatted
        self._signs = (decimal, thousands)
        self._types: dict[str, pa.DataType] = {}
        self._narrowest: dict[str, pa.DataType | None] = {}  # of text
        self._counts: dict[str, FormatCounts] = {}
        self.semicolons = False  # whether they are the delimiters of a file
        self.mixed: set[str] = set()  # columns that are read as text, since no other type holds all their values

    def add(self, schema: pa.Schema) -> None:
        """Add the columns of a file that has types."""
        for field in schema:
            self._types[field.name] = self._common(field.name, self._types.get(field.name, pa.null()), field.type)

    def add_json(self, schema: pa.Schema) -> None:
        """Add a block of JSON; columns of text of the model stay text if they look like numbers or dates."""
        self.add(schema)
        for name, kind in zip(schema.names, schema.types, strict=True):
            is_other = name in self._text and not (is_text(kind) or pa.types.is_null(kind))
            if is_other or is_incompatible(self._column_types.get(name), kind):
                self.mixed.add(name)

    def add_text(self, batch: pa.RecordBatch) -> None:
        """Add the values of a batch of text."""
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            stays_text = name in self._text or name in self._formatted
            narrowest = self._narrowest.setdefault(name, TEXT if stays_text else None)
            if stays_text or array.null_count == len(array):
                continue
            if narrowest != TEXT:
                narrowest = next((t for t in _WIDER.get(narrowest, (narrowest,)) if _holds(array, t)), TEXT)
                self._narrowest[name] = narrowest
            counts = self._counts.setdefault(name, FormatCounts())
            if pa.types.is_integer(narrowest):
                counts.add_whole(len(array) - array.null_count)
            else:
                counts.add(pc.utf8_trim_whitespace(array.drop_null()), plain=pa.types.is_floating(narrowest))

    def result(self, label: str) -> pa.Schema:
        """The columns and their types, once all files were added; a column without any value is null.

        Numbers with another decimal sign than those of the model, which could not be read, are a warning.
        """
        formats = decide_formats(self._counts, *self._signs, semicolons=self.semicolons).columns
        commas = [name for name, form in formats.items() if form.decimal == ","]
        for name, narrowest in self._narrowest.items():
            kind = TEXT if name in commas else narrowest or pa.null()
            kind = TEXT if is_incompatible(self._column_types.get(name), kind) else kind
            self._types[name] = self._common(name, self._types.get(name, pa.null()), kind)
        if unlike_model := [name for name in commas if self._column_types.get(name) == "numeric"]:
            names = listed(unlike_model)
            text = f"{label}: numbers of {names} have a decimal comma, and the model's have a decimal point."
            logger.warning(
                Message(text, "Give {decimal}.", "Write them with a decimal point.", options=(Option("decimal", ","),))
            )
        return pa.schema([(name, TEXT if name in self.mixed else kind) for name, kind in self._types.items()])

    def _common(self, name: str, known: pa.DataType, kind: pa.DataType) -> pa.DataType:
        """The type of a column that has several in different files or blocks."""
        if known == kind or pa.types.is_null(kind):
            return known
        if pa.types.is_null(known):
            return TEXT if pa.types.is_string_view(kind) else kind  # few functions of Arrow know views
        parts = [pa.schema([(name, _unpacked(k))]) for k in (known, kind)]
        try:
            return pa.unify_schemas(parts, promote_options="permissive").field(0).type
        except pa.ArrowException:
            self.mixed.add(name)
            return TEXT


def converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of a file, converted to the inferred type."""
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
        return bool(pc.all(pc.is_in(array.drop_null(), value_set=_BOOLEANS)).as_py())
    try:
        converted(array, kind)
    except pa.ArrowInvalid:
        return False
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return True
    zeros = array.filter(pc.starts_with(array, "0"))  # cheaper than the regular expression on all
    return not pc.any(pc.match_substring_regex(zeros, CODE_TEXT)).as_py()


def _unpacked(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return TEXT if pa.types.is_string(kind) or pa.types.is_string_view(kind) else kind
