"""Numbers, booleans and durations: one feature per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.layout import Boolean, Integer, Record, Text
from ptad.tables.number_format import DECIMALS, PLAIN, THOUSANDS, WHOLE_TEXT, NumberFormat
from ptad.tables.values import EXACT, booleans, decoded, is_text, looks_like, numbers


@dataclass(frozen=True)
class NumericColumn:
    """The encoder of a column with one number per cell."""

    name: str
    type: str  # "numeric", "boolean" (0 and 1) or "duration" (seconds)
    integer: bool = False  # whether the training values were integers: decoded ones are rounded
    # Subtracted exactly before the conversion to float64: the smallest training value if integers exceeded 2**53, so
    # that neighbouring identifiers or nanosecond timestamps stay distinct; otherwise 0.
    origin: int = 0
    form: NumberFormat = PLAIN  # of numbers that come as text

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array, form: NumberFormat = PLAIN) -> NumericColumn:
        """Fit whether the column holds integers and needs an origin."""
        values = decoded(array)
        if type != "numeric":
            return cls(name, type)
        if is_text(values.type):
            return cls(name, type, integer=looks_like(form.to_plain(values), WHOLE_TEXT), form=form)
        if not pa.types.is_integer(values.type):
            return cls(name, type, form=form)
        low, high = pc.min_max(values).as_py().values()
        wide = low is not None and max(abs(low), abs(high)) > EXACT
        return cls(name, type, True, low if wide else 0, form)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def resolution(self) -> float:
        """Half the step of decoded values; 0 if they have none."""
        if self.type == "duration":
            return 0.5e-6
        return 0.5 if self.integer or self.type == "boolean" else 0.0

    def raw(self, array: pa.Array) -> np.ndarray:
        """Features of shape (n_rows, 1), unscaled, NaN where missing."""
        if self.type == "boolean":
            return booleans(array, self.name)[:, None]
        expected = "a duration" if self.type == "duration" else "a number"
        return numbers(array, self.name, self.origin, self.form, expected)[:, None]

    def decode(self, raw: np.ndarray) -> np.ndarray:
        """Values in the units of the table from features."""
        values = raw[:, 0]
        if self.type == "boolean":
            return np.asarray(values > 0.5)
        if self.type == "duration":
            seconds = np.clip(np.nan_to_num(values), -9e12, 9e12)
            return np.asarray(np.rint(seconds * 1e6).astype("timedelta64[us]"))
        if not self.integer:
            return np.asarray(values + self.origin)
        rounded = np.rint(np.nan_to_num(values))
        if not self.origin:
            return np.asarray(np.clip(rounded, -(2.0**62), 2.0**62).astype(np.int64))
        exact = np.frompyfunc(int, 1, 1)(rounded) + self.origin  # Python integers: the sum may leave 64 bits
        low, high = (-(2**63), 2**63 - 1) if self.origin < 0 else (0, 2**64 - 1)
        return np.asarray(np.clip(exact, low, high), dtype=object)

    def to_json(self) -> dict[str, Any]:
        if self.type != "numeric":
            return {}
        return {"integer": self.integer} | ({"origin": self.origin} if self.origin else {}) | self.form.to_json()

    @classmethod
    def layout(cls, type: str) -> Record:
        if type != "numeric":
            return Record({})
        signs = {"decimal": Text(tuple(DECIMALS)), "thousands": Text(tuple(THOUSANDS))}
        return Record({"integer": Boolean()}, {"origin": Integer(-(2**64), 2**64), **signs})

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> NumericColumn:
        form = NumberFormat.from_json(state)
        return cls(name, type, bool(state.get("integer", False)), int(state.get("origin", 0)), form)
