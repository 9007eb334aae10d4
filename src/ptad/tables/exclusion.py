"""Why a column is not used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ptad.layout import AnyOf, Boolean, Null, Number, Record, Text, damaged
from ptad.tables.conversion import as_frame
from ptad.tables.values import decoded, without_missing

_TEXTS = {
    "constant": "constant",
    "identifier": "identifier: every value is different",
    "empty": "all values are missing",
    "dropped": "dropped by the user",
    "not chosen": "not among the columns chosen by the user",
    "label": "label column",
}


@dataclass(frozen=True)
class Exclusion:
    """The reason to exclude a column: a code, and the one value of a constant column."""

    code: str
    value: str | float | bool | None = None

    layout = Record({"code": Text(tuple(_TEXTS)), "value": AnyOf((Null(), Text(), Boolean(), Number()))})

    @classmethod
    def constant(cls, value: Any) -> Self:
        """Return the exclusion of a column with this value only; what JSON does not have is kept as text."""
        is_json = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
        return cls("constant", value if is_json else str(value))

    def phrase(self, *, values: bool = True) -> str:
        """Return the reason as text; without ``values`` it does not quote the table."""
        return f"constant: {self.value!r}" if self.code == "constant" and values else _TEXTS[self.code]

    def is_constant(self, value: Any) -> bool:
        """Whether this is the value of the constant column, in any type or precision."""
        text = str(self.value)
        if isinstance(value, str) and isinstance(self.value, str):
            return value == text
        try:
            return math.isclose(float(value), float(text), rel_tol=1e-6)
        except (TypeError, ValueError):
            return str(value) == text

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"code": self.code, "value": self.value}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Self:
        """Read back what :meth:`to_json` returned."""
        exclusion = cls(state["code"], state["value"])
        if (exclusion.code == "constant") == (exclusion.value is None):
            raise damaged("its schema.excluded", "a value of every constant column, and of no other")
        return exclusion


def changed_constants(table: Any, exclusions: Mapping[str, Exclusion], missing: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns that were excluded as constant and have another value in this table, with such a value."""
    constants = {name: exclusion for name, exclusion in exclusions.items() if exclusion.code == "constant"}
    if not constants:
        return {}
    frame = as_frame(table, typed=True, convert=constants.__contains__)
    changed: dict[str, Any] = {}
    for name in filter(constants.__contains__, frame.schema.names):
        cells = without_missing(decoded(frame.column(name)), missing).drop_null()
        with suppress(pa.ArrowNotImplementedError):  # nested values cannot be compared
            cells = pc.unique(cells)
        others = [value for value in cells[:2].to_pylist() if not constants[name].is_constant(value)]
        changed |= {name: others[0]} if others else {}
    return changed
