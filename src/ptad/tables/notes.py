"""Notes and warnings about how the columns of a table are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Message, Option
from ptad.layout import Boolean, ListOf, Record, Text
from ptad.tables.bad_cells import quoted_value
from ptad.tables.column_types import Reading, are_all_different, are_amounts
from ptad.tables.number_format import MOST_BAD, best_format
from ptad.tables.values import CODE_TEXT, decoded, is_text

_EXAMPLES = 3
_PLURALS = {"numeric": "numbers", "boolean": "true or false", "datetime": "dates", "date": "dates", "time": "times"}


@dataclass(frozen=True)
class Note:
    """How a part of a table is read, and the options to fit with if that is wrong."""

    text: str  # a sentence without its full stop
    options: tuple[Option, ...]
    doubtful: bool = False  # whether it is a guess, or may be a mistake

    layout = Record({"text": Text(), "options": ListOf(ListOf(Text(), 1, 3), low=1), "doubtful": Boolean()})

    @property
    def message(self) -> Message:
        """The note as a message for any interface."""
        names = " and ".join(f"{{{option.name}}}" for option in self.options)
        return Message(f"{self.text}.", f"If that is wrong, fit with {names}.", options=self.options)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; an option is its name, followed by its value or by a column and its type."""
        options = [
            [o.name, *(o.value if isinstance(o.value, tuple) else filter(None, [o.value]))] for o in self.options
        ]
        return {"text": self.text, "options": options, "doubtful": self.doubtful}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Note:
        """Read back what :meth:`to_json` returned."""
        options = ((name, rest) for name, *rest in state["options"])
        named = tuple(
            Option(n, (rest[0], rest[1]) if len(rest) == 2 else rest[0] if rest else None) for n, rest in options
        )
        return cls(state["text"], named, state["doubtful"])

    def __str__(self) -> str:
        return str(self.message)


def unread_column(name: str, type_: str, n: int) -> Message:
    """Return the warning about a column of new rows with ``n`` values, none of which can be read as its type."""
    return Message(
        f"Column {name!r} counts as missing in every row: none of its {n:,} values can be read as "
        f"{_PLURALS.get(type_, type_)}.",
        "Write it as in the training table; if only the signs in its numbers differ, give {decimal} and {thousands}.",
        "Write it as in the training table.",
    )


def doubtful_reading(
    name: str, reading: Reading, array: pa.Array, readable: pa.Array, *, chosen: bool = False
) -> Note | None:
    """Return a note if it is doubtful that a training column should be read like this.

    ``readable`` are its cells with nulls in place of those that cannot be read; ``chosen`` says that the user has
    chosen its type.
    """
    array = decoded(array)
    present = len(array) - array.null_count
    if pa.types.is_integer(array.type) and reading.type == "numeric" and not chosen:
        return _doubtful_integers(name, array)
    if not present or not is_text(array.type):
        return None
    if reading.type in ("categorical", "text"):
        return _doubtful_text(name, array.drop_null())
    share = (readable.null_count - array.null_count) / present
    if share <= MOST_BAD:
        return None
    unreadable = array.filter(pc.and_(array.is_valid(), readable.is_null()))
    values = _PLURALS.get(reading.type, reading.type)
    text = f"Column {name!r} is read as {values}: {_share(share, unreadable)} are not and count as missing"
    return Note(text, (Option("types", (name, "categorical")),), True)


def _doubtful_integers(name: str, array: pa.Array) -> Note | None:
    if not are_all_different(array) or not are_amounts(array):
        return None
    text = f"Column {name!r} has another whole number in every row: it is taken for an amount, not for an identifier"
    return Note(text, (Option("drop", name),), True)


def _doubtful_text(name: str, array: pa.Array) -> Note | None:
    text = pc.utf8_trim_whitespace(array)
    if pc.any(pc.match_substring_regex(text, CODE_TEXT)).as_py():
        return None
    is_number = best_format(text).matches(text)
    share = 1.0 - float(np.mean(is_number))
    if not MOST_BAD < share < 0.5:
        return None
    words = _share(share, array.filter(pa.array(~is_number)))
    text = f"Column {name!r} is read as text: {words} are not numbers, the others are; as numbers, these are missing"
    return Note(text, (Option("types", (name, "numeric")),), True)


def _share(share: float, values: pa.Array) -> str:
    examples = ", ".join(quoted_value(value) for value in pc.unique(values)[:_EXAMPLES].to_pylist())
    percent = f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"
    return f"{percent} % of its values ({examples})"
