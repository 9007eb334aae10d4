"""Number formats: 1.234,56 or 1,234.56 or 1 234,56.

One column may be ambiguous: 1,234 is a thousand or a little more than one. So the columns of a table decide together,
and where none of them decides, the guess is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import SettingError
from ptad.layout import damaged

NUMBER_TEXT = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[nN]a[nN]|[+-]?(inf|Inf|infinity|Infinity))$"
WHOLE_TEXT = r"^[+-]?\d+$"
MOST_BAD = 0.05  # share of values that cannot be read up to which a column of text is still one of numbers or dates
DECIMALS = {".": "point", ",": "comma"}
# A space may be a narrow or an unbreakable one, an apostrophe a typographic one.
THOUSANDS = {"": "", ".": r"\.", ",": ",", " ": "[ \u00a0\u202f]", "'": "['’]"}


@dataclass(frozen=True)
class NumberFormat:
    """The decimal sign and the thousands sign of numbers."""

    decimal: str = "."  # one of DECIMALS
    thousands: str = ""  # one of THOUSANDS, optional in a number

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in Python."""
        return self == PLAIN

    @cached_property
    def pattern(self) -> str:
        """The regular expression of a number."""
        if self.is_plain:
            return NUMBER_TEXT
        point, group = rf"\{self.decimal}", THOUSANDS[self.thousands]
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if group else r"\d+"
        return rf"^(?:[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?|[nN]a[nN])$"

    def matches(self, text: pa.Array) -> np.ndarray:
        """Whether each stripped cell is a number in this format, or missing."""
        return np.asarray(pc.match_substring_regex(text, self.pattern).fill_null(True))

    def without_groups(self, text: pa.Array) -> pa.Array:
        """Remove thousands signs that no training value had, if a decimal sign follows: 98.765,43 is no guess."""
        for group in (g for sign, g in THOUSANDS.items() if not self.thousands and sign not in ("", self.decimal)):
            grouped = pc.match_substring_regex(text, rf"^[+-]?[1-9]\d{{0,2}}(?:{group}\d{{3}})+\{self.decimal}\d+$")
            text = pc.if_else(grouped, pc.replace_substring_regex(text, group, ""), text)
        return text

    def to_plain(self, text: pa.Array) -> pa.Array:
        """Rewrite cells that match as numbers of Python."""
        if self.thousands:
            text = pc.replace_substring_regex(text, THOUSANDS[self.thousands], "")
        return text if self.decimal == "." else pc.replace_substring(text, self.decimal, ".")

    def with_signs(self, decimal: str | None, thousands: str | None) -> NumberFormat:
        """The format with some signs replaced; where both signs would be the same, the other one changes too."""
        point = decimal or self.decimal
        group = self.thousands if thousands is None else thousands
        if point == group:
            point, group = (point, "") if decimal is not None else ("," if group == "." else ".", group)
        return NumberFormat(point, group)

    def describe(self) -> str:
        """The names of the signs."""
        names = {**DECIMALS, " ": "space", "'": "apostrophe"}
        thousands = f" and a thousands {names[self.thousands]}" if self.thousands else ""
        return f"a decimal {names[self.decimal]}{thousands}"

    def example(self) -> str:
        """A number in this format."""
        return f"1{self.thousands}234{self.decimal}56"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; nothing for the plain format."""
        return {} if self.is_plain else {"decimal": self.decimal, "thousands": self.thousands}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> NumberFormat:
        """Read back what :meth:`to_json` returned."""
        form = cls(str(state.get("decimal", ".")), str(state.get("thousands", "")))
        if form.decimal == form.thousands:
            raise damaged("the signs of a column of numbers", "two different ones")
        return form


PLAIN = NumberFormat()
_NUMBER_FORMATS = tuple(
    NumberFormat(decimal, thousands) for decimal in DECIMALS for thousands in THOUSANDS if decimal != thousands
)


def best_format(text: pa.Array) -> NumberFormat:
    """The format that most of these values match; of equally good ones the plain one."""
    return max(_NUMBER_FORMATS, key=lambda form: float(form.matches(text).mean()))


def check_signs(decimal: str | None, thousands: str | None) -> None:
    """Raise if a sign that the user chose is unknown, or both are the same."""
    for name, given, known in (("decimal", decimal, DECIMALS), ("thousands", thousands, THOUSANDS)):
        if given is not None and given not in known:
            raise SettingError(
                f"The {name} sign cannot be {given!r}. It is one of: {', '.join(map(repr, known))}.",
                f"Choose one with {{{name}}}.",
            )
    if decimal is not None and decimal == thousands:
        raise SettingError(f"The decimal sign and the thousands sign are both {decimal!r}. Choose two different ones.")


_POINTS = NumberFormat(",", ".")
_CODE_LENGTH = 9  # grouped numbers, all of one length and at least this long, are telephone numbers and the like


class FormatCounts:
    """The number of values of one column that match each format; batches may be added one after the other."""

    def __init__(self) -> None:
        self.total = self.whole = 0
        self._matches = dict.fromkeys(_NUMBER_FORMATS, 0)
        self._lengths: set[int] = set()

    def add_whole(self, n: int) -> None:
        """Add values that are digits only and match any format."""
        self.total += n
        self.whole += n
        self._lengths = {0, 1}
        for form in self._matches:
            self._matches[form] += n

    def add(self, text: pa.Array, *, plain: bool = False) -> None:
        """Add the present values of a text column, stripped.

        ``plain`` says that they are known to be plain numbers; their points may still separate thousands.
        """
        before = self.total
        candidates = [
            f for f, n in self._matches.items() if 2 * n >= before and not (plain and f.decimal == "," and f != _POINTS)
        ]
        self.total += len(text)
        if not candidates or not len(text):
            return
        if len(self._lengths) < 2:
            self._lengths |= set(pc.min_max(pc.utf8_length(text)).as_py().values())
        if self.whole == before:  # otherwise the column is known to hold more than digits
            self.whole += int(np.asarray(pc.match_substring_regex(text, WHOLE_TEXT)).sum())
        for form in candidates:
            self._matches[form] += len(text) if plain and form.decimal == "." else int(form.matches(text).sum())

    def matching(self, form: NumberFormat) -> int:
        """The number of values that match a format."""
        return self._matches[form]

    def possible(self) -> tuple[NumberFormat, ...]:
        """The formats that the column may have; none if it holds digits only, which decide nothing."""
        if self.whole == self.total:
            return ()
        formats = tuple(f for f, n in self._matches.items() if n and n >= (1.0 - MOST_BAD) * self.total)
        if PLAIN not in formats and len(self._lengths) == 1 and min(self._lengths) >= _CODE_LENGTH:
            return ()
        return formats


@dataclass(frozen=True)
class TableFormats:
    """The number formats of a table."""

    table: NumberFormat  # plain where columns contradict each other
    columns: dict[str, NumberFormat]  # of the columns that are not plain
    guessed: tuple[str, ...]  # columns whose decimal sign no value decides


def decide_formats(
    counts: Mapping[str, FormatCounts],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    semicolons: bool = False,
) -> TableFormats:
    """Decide the number format of every column from the formats that its values match.

    A column that does not match the signs that the user chose, but is plain, stays plain. ``semicolons`` says that they
    separate the cells of the file, as where the comma is the decimal sign: that is the guess for a column such as 1,234
    where nothing else decides.
    """
    check_signs(decimal, thousands)
    if decimal is None and thousands in DECIMALS:  # the other one of the two signs is the decimal one
        decimal = "," if thousands == "." else "."
    allowed = {
        name: [
            f for f in formats if decimal in (None, f.decimal) and (thousands is None or f.thousands in ("", thousands))
        ]
        for name, count in counts.items()
        if (formats := count.possible())
    }
    if decimal is None:
        votes = {signs.pop() for formats in allowed.values() if len(signs := {f.decimal for f in formats}) == 1}
        decimal = votes.pop() if len(votes) == 1 else None
    columns: dict[str, NumberFormat] = {}
    guessed = []
    for name, possible in allowed.items():
        candidates = [f for f in possible if decimal in (None, f.decimal)] or [PLAIN]
        if PLAIN in possible and decimal != ",":
            candidates = [PLAIN]
        elif len({f.decimal for f in candidates}) > 1 and any(f.thousands == "," for f in candidates):  # 1,234
            guessed.append(name)
            candidates = [f for f in candidates if f.decimal == ("," if semicolons else ".")]
        count = counts[name]
        columns[name] = min(candidates, key=lambda f: (-count.matching(f), f.thousands != "", f.decimal != "."))
    common = {sign: _common_format(sign, thousands, columns.values()) for sign in DECIMALS}
    columns = {
        name: common[f.decimal] if f.thousands in ("", common[f.decimal].thousands) else f
        for name, f in columns.items()
    }
    signs = {f.decimal for f in columns.values()}
    table = common[decimal or (signs.pop() if len(signs) == 1 else ".")]
    return TableFormats(table, {n: f for n, f in columns.items() if not f.is_plain}, tuple(guessed))


def _common_format(decimal: str, thousands: str | None, formats: Iterable[NumberFormat]) -> NumberFormat:
    """The format of all columns with this decimal sign, if one thousands sign was chosen or occurs."""
    seen = {f.thousands for f in formats if f.decimal == decimal} - {""}
    group = thousands if thousands is not None else seen.pop() if len(seen) == 1 else ""
    return NumberFormat(decimal, "" if group == decimal else group)
