"""Which signs the numbers of a table are written with.

One column may not tell: 1,234 is a thousand or a little more than one. So the columns of a table decide together, and
what none of them decides is a guess that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.number_format import DECIMALS, FORMATS, PLAIN, WHOLE_TEXT, NumberFormat

_POINTS = NumberFormat(",", ".")
_CODE_LENGTH = 9  # grouped numbers, all of one length and at least this long, are telephone numbers and the like


class NumberTally:
    """How many values of one column fit each format; batches may be added one after the other."""

    def __init__(self) -> None:
        self.total = self.whole = 0
        self._fit = dict.fromkeys(FORMATS, 0)
        self._lengths: set[int] = set()

    def add_whole(self, n: int) -> None:
        """Add values that are digits and nothing else, which fit any format."""
        self.total += n
        self.whole += n
        self._lengths = {0, 1}
        for form in self._fit:
            self._fit[form] += n

    def add_plain(self, text: pa.Array) -> None:
        """Add present values that are known to be numbers as in programs; their points may still mark thousands."""
        self._add(text, plain=True)

    def add(self, text: pa.Array) -> None:
        """Add the present values of a text column, stripped."""
        self._add(text, plain=False)

    def possible(self, most_bad: float) -> tuple[NumberFormat, ...]:
        """The formats that hold for the column; none for digits only, which say nothing."""
        if self.whole == self.total:
            return ()
        found = tuple(f for f, n in self._fit.items() if n and n >= (1.0 - most_bad) * self.total)
        if PLAIN not in found and len(self._lengths) == 1 and min(self._lengths) >= _CODE_LENGTH:
            return ()
        return found

    def _add(self, text: pa.Array, *, plain: bool) -> None:
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


@dataclass(frozen=True)
class NumberSigns:
    """How the numbers of a table are written.

    Attributes
    ----------
    table : NumberFormat
        The format of the table; plain where columns contradict each other.
    columns : dict
        Column to the format that reads it, where that is not the plain one.
    guessed : tuple of str
        Columns whose decimal sign no value decides.
    """

    table: NumberFormat = PLAIN
    columns: dict[str, NumberFormat] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()


def decide_signs(
    tallies: Mapping[str, NumberTally],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    semicolons: bool = False,
    most_bad: float = 0.0,
) -> NumberSigns:
    """Decide the format of every column.

    Parameters
    ----------
    tallies : mapping of column to NumberTally
        What the values of the columns fit.
    decimal, thousands : str, optional
        Signs that the user chose. A column that fits them in no way, but is plain, stays plain.
    semicolons : bool
        Whether semicolons separate the cells, as in files from where the comma is the decimal sign: that is the guess
        for a column such as 1,234 where nothing else decides.
    most_bad : float
        Share of values that may fit no format.
    """
    if decimal is None and thousands in DECIMALS:  # the other of the two signs is left
        decimal = "," if thousands == "." else "."
    possible = {name: found for name, tally in tallies.items() if (found := tally.possible(most_bad))}
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
