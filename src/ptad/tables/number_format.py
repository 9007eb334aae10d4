"""Numbers as people write them: 1.234,56 or 1,234.56 or 1 234,56."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import SettingError
from ptad.layout import damaged
from ptad.messages import Option

NUMBER_TEXT = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[nN]a[nN]|[+-]?(inf|Inf|infinity|Infinity))$"
WHOLE_TEXT = r"^[+-]?\d+$"
DECIMALS = {".": "point", ",": "comma"}
# A space may be a narrow or an unbreakable one, an apostrophe a typographic one.
THOUSANDS = {"": "", ".": r"\.", ",": ",", " ": "[ \u00a0\u202f]", "'": "['’]"}


@dataclass(frozen=True)
class NumberFormat:
    """The signs in a number.

    Attributes
    ----------
    decimal : {".", ","}
        Sign before the fraction.
    thousands : {"", ".", ",", " ", "'"}
        Sign between groups of three digits; a number may do without it.
    """

    decimal: str = "."
    thousands: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in programs."""
        return self == PLAIN

    @cached_property
    def pattern(self) -> str:
        """What a number looks like."""
        if self.is_plain:
            return NUMBER_TEXT
        point, group = rf"\{self.decimal}", THOUSANDS[self.thousands]
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if group else r"\d+"
        return rf"^(?:[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?|[nN]a[nN])$"

    def fits(self, text: pa.Array) -> np.ndarray:
        """Per stripped cell: missing, or a number."""
        return np.asarray(pc.match_substring_regex(text, self.pattern).fill_null(True))

    def plain(self, text: pa.Array) -> pa.Array:
        """Numbers written as in programs; for cells that fit."""
        if self.thousands:
            text = pc.replace_substring_regex(text, THOUSANDS[self.thousands], "")
        return text if self.decimal == "." else pc.replace_substring(text, self.decimal, ".")

    def with_signs(self, decimal: str | None, thousands: str | None) -> NumberFormat:
        """The format with the signs that are given; a sign of its own that is the same gives way."""
        point = decimal or self.decimal
        group = self.thousands if thousands is None else thousands
        if point == group:
            point, group = (point, "") if decimal is not None else ("," if group == "." else ".", group)
        return NumberFormat(point, group)

    def example(self) -> str:
        """A number in this format."""
        return f"1{self.thousands}234{self.decimal}56"

    def to_json(self) -> dict[str, Any]:
        """Plain types; nothing for what goes without saying."""
        return {} if self.is_plain else {"decimal": self.decimal, "thousands": self.thousands}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> NumberFormat:
        """Read back what :meth:`to_json` wrote."""
        form = cls(str(state.get("decimal", ".")), str(state.get("thousands", "")))
        if form.decimal == form.thousands:
            raise damaged("the signs of a column of numbers", "two different ones")
        return form


PLAIN = NumberFormat()
FORMATS = tuple(
    NumberFormat(decimal, thousands) for decimal in DECIMALS for thousands in THOUSANDS if decimal != thousands
)


def check_signs(decimal: str | None, thousands: str | None) -> None:
    """Raise if the signs that a user chose are none, or the same."""
    for name, given, known in (("decimal", decimal, DECIMALS), ("thousands", thousands, THOUSANDS)):
        if given is not None and given not in known:
            raise SettingError(
                f"The {name} sign cannot be {given!r}. It is one of: {', '.join(map(repr, known))}.",
                "Choose one with {}.",
                (Option(name),),
            )
    if decimal is not None and decimal == thousands:
        raise SettingError(f"The decimal sign and the thousands sign are both {decimal!r}. Choose two different ones.")
