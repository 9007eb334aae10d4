"""Columns of a training table whose type is questionable, since many of their values read as another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.bad_cells import quoted
from ptad.tables.kinds import MOST_BAD, likely_kind
from ptad.tables.values import decoded, is_text

_EXAMPLES = 3
_PLURALS = {"number": "numbers", "boolean": "true or false", "datetime": "dates", "date": "dates"}
_WORDS = {"number": "numeric", "category": "categorical", "datetime": "datetime"}


@dataclass(frozen=True)
class TypeDoubt:
    """A column that may be of another type.

    Attributes
    ----------
    column, kind : str
        The column and its type.
    other : str
        The type that it may be of instead.
    share : float
        Share of the present values that do not fit: they count as missing, or keep the column from the other type.
    examples : tuple of str
        Some of these values.
    """

    column: str
    kind: str
    other: str
    share: float
    examples: tuple[str, ...]

    def __str__(self) -> str:
        share = f"{100 * self.share:.2g} % of its values ({', '.join(self.examples)})"
        remedy = f"--type {self.column}={_WORDS.get(self.other, self.other)}"
        if self.kind in ("category", "text"):
            return (
                f"column {self.column!r} is read as text: {share} are not {_PLURALS[self.other]}, the others are. If "
                f"it holds {_PLURALS[self.other]}, say so with {remedy}: those values then count as missing"
            )
        return (
            f"column {self.column!r} is read as {_PLURALS.get(self.kind, self.kind)}: {share} are not and count as "
            f"missing. If the column is of another type, name it, such as {remedy}"
        )


def doubt_of(name: str, kind: str, array: pa.Array, readable: pa.Array) -> TypeDoubt | None:
    """Return the doubt about a training column, or None; ``readable`` has nulls for cells that cannot be read."""
    array = decoded(array)
    present = len(array) - array.null_count
    if not present or not is_text(array.type):
        return None
    if kind not in ("category", "text"):
        share = (readable.null_count - array.null_count) / present
        odd = array.filter(pc.and_(array.is_valid(), readable.is_null()))
        return TypeDoubt(name, kind, "category", share, _some(odd)) if share > MOST_BAD else None
    likely, share = likely_kind(array)
    if not 0.5 < share < 1.0 - MOST_BAD:
        return None
    return TypeDoubt(name, kind, likely, 1.0 - share, _some(_unlike(array, likely)))


def _unlike(array: pa.Array, kind: str) -> pa.Array:
    """Some values that do not read as this type."""
    values = pc.unique(array.drop_null())[:1000]
    odd = np.array([likely_kind(values.slice(i, 1)) != (kind, 1.0) for i in range(len(values))])
    return values.filter(pa.array(odd))


def _some(array: pa.Array) -> tuple[str, ...]:
    return tuple(quoted(value) for value in pc.unique(array)[:_EXAMPLES].to_pylist())
