"""Categories: one encoded column per known value, and one for values never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.tables.values import texts


@dataclass(frozen=True)
class CategoryColumn:
    """A one-hot group over the values that occurred in training, in sorted order, then "unseen".

    A missing cell makes the whole group NaN. "unseen" is 0 in training and 1 for any other value; under "standard"
    scaling its scale is at most 0.1 and at most the smallest scale of the group, so that an unseen value lies at least
    as far out as the rarest known one.
    """

    name: str
    values: tuple[str, ...]
    kind: str = "category"

    @classmethod
    def fit(cls, name: str, kind: str, array: pa.Array) -> CategoryColumn:
        """Learn the known values."""
        return cls(name, tuple(sorted(v for v in pc.unique(texts(array, name)).to_pylist() if v is not None)), kind)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (*(f"{self.name}={value}" for value in self.values), f"{self.name}: unseen")

    @property
    def bounds(self) -> list[tuple[float, float] | None]:
        """Natural bounds per encoded column."""
        return [(0.0, 1.0)] * (len(self.values) + 1)

    def raw(self, array: pa.Array, offset: int) -> np.ndarray:
        """One-hot rows of shape (n_rows, n_values + 1), NaN where missing."""
        text = texts(array, self.name)
        known = pc.index_in(text, value_set=pa.array(self.values, pa.large_string()))
        codes = known.fill_null(len(self.values)).to_numpy(zero_copy_only=False).astype(np.int64)
        block = np.zeros((len(codes), len(self.values) + 1))
        block[np.arange(len(codes)), codes] = 1.0
        block[np.asarray(text.is_null())] = np.nan
        return block

    def decode(self, raw: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The most likely known value of every row."""
        return np.asarray(np.array(self.values, dtype=object)[np.argmax(raw[:, :-1], axis=1)])

    def to_json(self) -> dict[str, Any]:
        """Plain types for the schema file."""
        return {"values": list(self.values)}

    @classmethod
    def from_json(cls, name: str, kind: str, state: dict[str, Any]) -> CategoryColumn:
        """Read back what :meth:`to_json` wrote."""
        return cls(name, tuple(state["values"]), kind)
