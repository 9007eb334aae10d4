"""Categories: one code per known value, and one for all unseen ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.layout import Listed, Record, Text
from ptad.tables.values import texts


@dataclass(frozen=True)
class CategoricalColumn:
    """Codes of the values that occurred in training, in sorted order; the next code is that of unseen values."""

    name: str
    values: tuple[str, ...]
    type: str = "categorical"

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array) -> CategoricalColumn:
        """Learn the known values."""
        return cls(name, tuple(sorted(v for v in pc.unique(texts(array, name)).to_pylist() if v is not None)), type)

    @property
    def n_categories(self) -> int:
        """Number of known values."""
        return len(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of the feature."""
        return (self.name,)

    def raw(self, array: pa.Array) -> np.ndarray:
        """Codes of shape (n_rows, 1), NaN where missing."""
        text = texts(array, self.name)
        known = pc.index_in(text, value_set=pa.array(self.values, pa.large_string()))
        codes = known.fill_null(len(self.values)).to_numpy(zero_copy_only=False).astype(np.float64)
        codes[np.asarray(text.is_null())] = np.nan
        return np.asarray(codes[:, None])

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """The value of every code, None where there is none."""
        values = np.array([*self.values, None], dtype=object)
        codes = np.nan_to_num(rows[:, 0], nan=len(self.values))
        return np.asarray(values[np.clip(np.rint(codes), 0, len(self.values)).astype(np.int64)])

    def to_json(self) -> dict[str, Any]:
        """Plain types for the schema file."""
        return {"values": list(self.values)}

    @classmethod
    def layout(cls, type: str) -> Record:
        """What :meth:`to_json` writes."""
        return Record({"values": Listed(Text(), low=1, distinct=True)})

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> CategoricalColumn:
        """Read back what :meth:`to_json` wrote."""
        return cls(name, tuple(state["values"]), type)
