"""Categories, encoded as codes, and text, encoded as a fixed number of features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.layout import MOST_ROWS, Integer, ListOf, MappingOf, Record, Text, damaged
from ptad.tables.values import strings

MOST_VALUES = 1000  # repeated values that the schema keeps
N_BUCKETS = 8  # hashed character trigrams
MOST_CHARACTERS = 256  # letters and trigrams are counted in the first characters only
TYPICAL_LENGTH = 16.0  # length l is encoded as l / (l + 16): bounded, with the best resolution for short texts
_SHARES = {"digits": r"\d", "letters": r"\p{L}", "spaces": r"\s"}


@dataclass(frozen=True)
class CategoricalColumn:
    """The encoder of categories: codes of the training values in sorted order, and one for unseen values."""

    name: str
    values: tuple[str, ...]
    type: str = "categorical"

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array) -> CategoricalColumn:
        """Fit the known values."""
        return cls(name, tuple(sorted(v for v in pc.unique(strings(array, name)).to_pylist() if v is not None)), type)

    @property
    def n_categories(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.name,)

    def raw(self, array: pa.Array) -> np.ndarray:
        """Codes of shape (n_rows, 1), NaN where missing."""
        text = strings(array, self.name)
        known = pc.index_in(text, value_set=pa.array(self.values, pa.large_string()))
        codes = known.fill_null(len(self.values)).to_numpy(zero_copy_only=False).astype(np.float64)
        codes[np.asarray(text.is_null())] = np.nan
        return np.asarray(codes[:, None])

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """The value of every code, None for unseen ones."""
        values = np.array([*self.values, None], dtype=object)
        codes = np.nan_to_num(rows[:, 0], nan=len(self.values))
        return np.asarray(values[np.clip(np.rint(codes), 0, len(self.values)).astype(np.int64)])

    def to_json(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    @classmethod
    def layout(cls, type: str) -> Record:
        return Record({"values": ListOf(Text(), low=1, distinct=True)})

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> CategoricalColumn:
        return cls(name, tuple(state["values"]), type)


@dataclass(frozen=True)
class TextColumn:
    """The encoder of text: 6 + 8 features in place of a one-hot group.

    - log frequency in training and a "new" flag. Only values that occurred at least twice are kept, so a value that
      occurred once looks the same as an unseen one: in a column of free text, where most values are new, a new value is
      no surprise; in a column where every value repeats, it is.
    - length, and the shares of digits, letters and spaces.
    - shares of the character trigrams that fall into each of 8 hash buckets.
    """

    name: str
    counts: dict[str, int]
    n_rows: int
    type: str = "text"

    @classmethod
    def fit(cls, name: str, type: str, array: pa.Array) -> TextColumn:
        """Fit the counts of repeated values."""
        counts = strings(array, name).drop_null().value_counts()
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))
        pairs = zip(repeated.field("values").to_pylist(), repeated.field("counts").to_pylist(), strict=True)
        most_frequent = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]
        return cls(name, dict(most_frequent), len(array) - array.null_count, type)

    @property
    def labels(self) -> tuple[str, ...]:
        parts = ("log frequency", "new", "length", *_SHARES, *(f"trigrams {i}" for i in range(N_BUCKETS)))
        return tuple(f"{self.name}: {part}" for part in parts)

    def raw(self, array: pa.Array) -> np.ndarray:
        """Features of shape (n_rows, 14), NaN where missing."""
        text = strings(array, self.name)
        missing = np.asarray(text.is_null())
        block = self._encode(text.fill_null(""))
        block[missing] = np.nan
        return block

    def codes(self, array: pa.Array) -> np.ndarray:
        """The position of every cell among the kept values; -1 for a new value and a missing one."""
        position = pc.index_in(strings(array, self.name), value_set=pa.array(list(self.counts), pa.large_string()))
        return np.asarray(position.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def without(self, codes: np.ndarray, n_present: int) -> TextColumn:
        """Return the column as fitted without some cells, given their codes and how many of them are present."""
        removed = np.bincount(codes[codes >= 0], minlength=len(self.counts)).tolist()
        counts = {value: n - less for (value, n), less in zip(self.counts.items(), removed, strict=True)}
        return replace(self, counts={v: n for v, n in counts.items() if n > 1}, n_rows=self.n_rows - n_present)

    def recount(self, raw: np.ndarray, codes: np.ndarray, held_out: np.ndarray) -> np.ndarray:
        """Features of the training rows, given their codes, as if the column had been fitted without some of them."""
        present = ~np.isnan(raw[:, 1])
        fitted = self.without(codes[held_out], int(present[held_out].sum()))
        rows = max(fitted.n_rows, 1)
        counts = np.array([*(fitted.counts.get(value, 1) for value in self.counts), 1])  # the last is that of code -1
        frequency = np.array([math.log(n / rows) for n in counts.tolist()])
        features = raw.copy()
        features[present, 0] = frequency[codes[present]]
        features[present, 1] = counts[codes[present]] == 1
        return features

    def decode(self, raw: np.ndarray) -> np.ndarray:
        """The kept value whose features are nearest, or None where a new value is more likely."""
        decoded = np.full(len(raw), None, dtype=object)
        known = np.flatnonzero(~(raw[:, 1] > 0.5))
        if not self.counts or not len(known):
            return decoded
        values = np.asarray(list(self.counts), dtype=object)
        features = self._encode(pa.array(values, pa.large_string()))
        distances = (features**2).sum(axis=1) - 2.0 * np.nan_to_num(raw[known]) @ features.T
        decoded[known] = values[np.argmin(distances, axis=1)]
        return decoded

    def to_json(self) -> dict[str, Any]:
        return {"n_rows": self.n_rows, "counts": self.counts}

    @classmethod
    def layout(cls, type: str) -> Record:
        return Record({"n_rows": Integer(0, MOST_ROWS), "counts": MappingOf(Integer(1, MOST_ROWS))})

    @classmethod
    def from_json(cls, name: str, type: str, state: dict[str, Any]) -> TextColumn:
        counts, n_rows = {str(k): int(v) for k, v in state["counts"].items()}, int(state["n_rows"])
        if len(counts) > MOST_VALUES:
            raise damaged("the counts of a text column", f"those of at most {MOST_VALUES:,} values")
        if sum(counts.values()) > n_rows:
            raise damaged("the counts of a text column", f"those of at most {n_rows:,} rows")
        return cls(name, counts, n_rows, type)

    def _encode(self, text: pa.Array) -> np.ndarray:
        # Only look-ups and + - * / on cells: vectorised logarithms may differ in the last bit between batches.
        codes = self.codes(text)
        rows = max(self.n_rows, 1)
        frequency = np.array([math.log(c / rows) for c in (*self.counts.values(), 1)])  # the last is that of code -1
        block = np.empty((len(text), 6 + N_BUCKETS))
        block[:, 0] = frequency[codes]
        block[:, 1] = codes < 0
        length = _floats(pc.utf8_length(text))
        block[:, 2] = length / (length + TYPICAL_LENGTH)
        start = pc.utf8_slice_codeunits(text, 0, MOST_CHARACTERS)
        whole = np.maximum(_floats(pc.utf8_length(start)), 1.0)
        for j, pattern in enumerate(_SHARES.values(), start=3):
            block[:, j] = _floats(pc.count_substring_regex(start, pattern)) / whole
        block[:, 6:] = _trigram_shares(start)
        return block


def _floats(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _trigram_shares(text: pa.Array) -> np.ndarray:
    """Share of the byte trigrams of every cell in each hash bucket; a cell shorter than three bytes has none."""
    n = len(text)
    text = text.cast(pa.large_binary())
    _, offsets_buffer, data_buffer = text.buffers()
    counts = np.zeros((n, N_BUCKETS))
    if not n or data_buffer is None:
        return counts
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[text.offset : text.offset + n + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]].astype(np.uint32)
    if len(data) < 3:
        return counts
    rows = np.repeat(np.arange(n), np.diff(offsets))
    whole = rows[:-2] == rows[2:]  # trigrams that do not reach into the next cell
    mixed = (data[:-2] << 16) | (data[1:-1] << 8) | data[2:]
    # the top bits of Knuth's multiplicative hash
    buckets = ((mixed * np.uint32(2654435761)) >> np.uint32(29)).astype(np.int64)
    places = rows[:-2][whole] * N_BUCKETS + buckets[whole]
    counts = np.bincount(places, minlength=n * N_BUCKETS).reshape(n, N_BUCKETS).astype(np.float64)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
