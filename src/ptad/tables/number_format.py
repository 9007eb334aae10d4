"""Numbers as people write them: 1.234,56 or 1,234.56 or 1 234,56.

One column may not tell: 1,234 is a thousand or a little more than one. So the columns of a table decide together, and
what none of them decides is a guess that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import Option, SettingError
from ptad.layout import damaged

NUMBER_TEXT = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[nN]a[nN]|[+-]?(inf|Inf|infinity|Infinity))$"
WHOLE_TEXT = r"^[+-]?\d+$"
MOST_BAD = 0.05  # share of values that cannot be read up to which a column of text is still one of numbers or dates
DECIMALS = {".": "point", ",": "comma"}
# A space may be a narrow or an unbreakable one, an apostrophe a typographic one.
THOUSANDS = {"": "", ".": r"\.", ",": ",", " ": "[ \u00a0\u202f]", "'": "['’]"}


@dataclass(frozen=True)
class NumberFormat:
    """The signs in a number."""

    decimal: str = "."  # one of DECIMALS, before the fraction
    thousands: str = ""  # one of THOUSANDS, between groups of three digits; a number may do without it

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

    def words(self) -> str:
        """What the signs are."""
        names = {**DECIMALS, " ": "space", "'": "apostrophe"}
        return f"a decimal {names[self.decimal]}" + (
            f" and a thousands {names[self.thousands]}" if self.thousands else ""
        )

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
_NUMBER_FORMATS = tuple(
    NumberFormat(decimal, thousands) for decimal in DECIMALS for thousands in THOUSANDS if decimal != thousands
)


def best_format(text: pa.Array) -> NumberFormat:
    """The format that most of these values fit; as in programs where others fit no more of them."""
    return max(_NUMBER_FORMATS, key=lambda form: float(form.fits(text).mean()))


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


_POINTS = NumberFormat(",", ".")
_CODE_LENGTH = 9  # grouped numbers, all of one length and at least this long, are telephone numbers and the like


class NumberTally:
    """How many values of one column fit each format; batches may be added one after the other."""

    def __init__(self) -> None:
        self.total = self.whole = 0
        self._fit = dict.fromkeys(_NUMBER_FORMATS, 0)
        self._lengths: set[int] = set()

    def add_whole(self, n: int) -> None:
        """Add values that are digits and nothing else, which fit any format."""
        self.total += n
        self.whole += n
        self._lengths = {0, 1}
        for form in self._fit:
            self._fit[form] += n

    def add(self, text: pa.Array, *, plain: bool = False) -> None:
        """Add the present values of a text column, stripped.

        ``plain`` says that they are known to be numbers as in programs; their points may still mark thousands.
        """
        before = self.total
        alive = [
            f for f, n in self._fit.items() if 2 * n >= before and not (plain and f.decimal == "," and f != _POINTS)
        ]
        self.total += len(text)
        if not alive or not len(text):
            return
        if len(self._lengths) < 2:
            self._lengths |= set(pc.min_max(pc.utf8_length(text)).as_py().values())
        if self.whole == before:  # later it is known that the column holds more than digits
            self.whole += int(np.asarray(pc.match_substring_regex(text, WHOLE_TEXT)).sum())
        for form in alive:
            self._fit[form] += len(text) if plain and form.decimal == "." else int(form.fits(text).sum())

    def possible(self) -> tuple[NumberFormat, ...]:
        """The formats that hold for the column; none for digits only, which say nothing."""
        if self.whole == self.total:
            return ()
        found = tuple(f for f, n in self._fit.items() if n and n >= (1.0 - MOST_BAD) * self.total)
        if PLAIN not in found and len(self._lengths) == 1 and min(self._lengths) >= _CODE_LENGTH:
            return ()
        return found


@dataclass(frozen=True)
class NumberSigns:
    """How the numbers of a table are written."""

    table: NumberFormat  # plain where columns contradict each other
    columns: dict[str, NumberFormat]  # of the columns that are not plain
    guessed: tuple[str, ...]  # columns whose decimal sign no value decides


def decide_signs(
    tallies: Mapping[str, NumberTally],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    semicolons: bool = False,
) -> NumberSigns:
    """Decide the format of every column by what its values fit.

    A column that fits the signs that the user chose in no way, but is plain, stays plain. ``semicolons`` separate the
    cells in files from where the comma is the decimal sign: that is the guess for a column such as 1,234 where nothing
    else decides.
    """
    check_signs(decimal, thousands)
    if decimal is None and thousands in DECIMALS:  # the other of the two signs is left
        decimal = "," if thousands == "." else "."
    possible = {name: found for name, tally in tallies.items() if (found := tally.possible())}
    allowed = {
        name: tuple(
            f for f in found if decimal in (None, f.decimal) and (thousands is None or f.thousands in ("", thousands))
        )
        for name, found in possible.items()
    }
    if decimal is None:
        votes = {signs.pop() for found in allowed.values() if len(signs := {f.decimal for f in found}) == 1}
        decimal = votes.pop() if len(votes) == 1 else None
    columns: dict[str, NumberFormat] = {}
    guessed = []
    for name, found in allowed.items():
        fitting = [f for f in found if decimal in (None, f.decimal)] or [PLAIN]
        if PLAIN in found and decimal != ",":
            fitting = [PLAIN]
        elif len({f.decimal for f in fitting}) > 1 and any(f.thousands == "," for f in fitting):  # 1,234
            guessed.append(name)
            fitting = [f for f in fitting if f.decimal == ("," if semicolons else ".")]
        columns[name] = min(fitting, key=lambda f: (f.thousands != "", f.decimal != "."))
    tables = {sign: _common(sign, thousands, columns.values()) for sign in DECIMALS}
    columns = {
        name: tables[f.decimal] if f.thousands in ("", tables[f.decimal].thousands) else f
        for name, f in columns.items()
    }
    signs = {f.decimal for f in columns.values()}
    table = tables[decimal or (signs.pop() if len(signs) == 1 else ".")]
    return NumberSigns(table, {n: f for n, f in columns.items() if not f.is_plain}, tuple(guessed))


def _common(decimal: str, thousands: str | None, forms: Iterable[NumberFormat]) -> NumberFormat:
    """The one format of all columns with this decimal sign, where one thousands sign is chosen or seen."""
    seen = {f.thousands for f in forms if f.decimal == decimal} - {""}
    group = thousands if thousands is not None else seen.pop() if len(seen) == 1 else ""
    return NumberFormat(decimal, "" if group == decimal else group)
