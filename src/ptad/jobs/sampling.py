"""Reads training rows from files of any size: all of them, or a uniform sample that fits into memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.arrays import Matrix
from ptad.errors import DataError, Message, SettingError
from ptad.jobs import Progress
from ptad.jobs.labels import check_label, equals, values_of
from ptad.tables import Schema, scan_table
from ptad.tables.places import Places

logger = logging.getLogger("ptad")

MAX_ROWS = 1_000_000


@dataclass(frozen=True)
class Sample:
    """Rows to fit on."""

    table: pa.Table  # the rows, in the order of the files
    places: Places  # where they are in the files
    rows_read: int
    rows_normal: int  # rows that are normal by their label; all rows without a label

    @property
    def is_partial(self) -> bool:
        """Whether there were more normal rows than the limit allows."""
        return bool(self.table.num_rows < self.rows_normal)


def training_rows(
    source: Any,
    *,
    label: str | None = None,
    normal: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
    seed: int = 0,
    missing: Sequence[str] = (),
    schema: Schema | None = None,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> Sample:
    """Read the normal rows of a table, or a uniform sample of ``max_rows`` of them.

    The files are read batch by batch, so memory is bounded by about twice the sample. The same seed and files give the
    same sample. The label column stays in the table: drop it when fitting. ``schema`` is that of a model, for rows that
    it takes in.
    """
    if max_rows < 2:
        problem = f"At least 2 rows are needed to fit on; the limit is {max_rows:,}."
        raise SettingError(problem, "Give {max_rows} at least 2.")
    if (label is None) != (not normal):
        raise SettingError(
            "A label column and its normal values belong together.", "Give {label} and {normal}, or neither."
        )
    scan = scan_table(source, missing=missing, encoding=encoding, schema=schema)
    if label is not None:
        check_label(label, scan.schema.names, scan.label)
    reservoir = Reservoir(max_rows, seed)
    n_read = 0
    labels = pa.nulls(0)  # of the first rows, for the error that no row is normal
    for batch in scan:
        numbers = np.arange(n_read, n_read + batch.num_rows)
        n_read += batch.num_rows
        if label is not None:
            labels = labels if len(labels) else batch.column(label).unique()[:1000]
            is_normal = equals(batch.column(label), normal)
            batch, numbers = batch.filter(pa.array(is_normal)), numbers[is_normal]
        reservoir.add(batch, numbers)
        if progress is not None:
            progress(n_read, scan.n_rows)
    if label is not None and not reservoir.n_seen:
        raise DataError(
            f"{scan.label} has no normal rows: no value of the label column {label!r} is "
            f"{' or '.join(map(repr, normal))}. Its values are: {values_of(labels)}.",
            "Name one of them with {normal}.",
        )
    table, numbers = reservoir.rows(scan.schema)
    sample = Sample(table, scan.places.picked(numbers), n_read, reservoir.n_seen)
    if sample.is_partial:
        problem = f"training on a uniform sample of {sample.table.num_rows:,} of {sample.rows_normal:,} rows."
        logger.warning(Message(problem, "Raise {max_rows} to use more."))
    return sample


class Reservoir:
    """A uniform sample of a stream: every row draws a random key, and the rows with the smallest keys stay."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.n_seen = size, 0
        self._rng, self._limit = np.random.default_rng(seed), 1.0
        self._keys: list[Matrix] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch, numbers: NDArray[np.int64]) -> None:
        """Add rows of the stream with their numbers."""
        keys = self._rng.random(batch.num_rows)
        self.n_seen += batch.num_rows
        candidates = keys < self._limit
        if not candidates.all():
            batch, keys, numbers = batch.filter(pa.array(candidates)), keys[candidates], numbers[candidates]
        self._keys.append(keys)
        self._numbers.append(numbers)
        self._batches.append(batch)
        self._shrink(2 * self.size)

    def rows(self, schema: pa.Schema) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the sample, in the order of the stream, and the numbers of its rows."""
        self._shrink(self.size)
        numbers = np.concatenate([*self._numbers, np.empty(0, dtype=np.int64)])
        return pa.Table.from_batches(self._batches, schema=schema), numbers

    def _shrink(self, max_rows: int) -> None:
        """Reduce the rows to the sample if there are more than ``max_rows``."""
        if sum(map(len, self._keys)) <= max_rows:
            return
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        chosen = np.sort(np.argpartition(keys, self.size - 1)[: self.size])  # sorted: the order of the stream
        # `take` copies, so the batches that the rows came from can be freed
        table = pa.Table.from_batches(self._batches).take(pa.array(chosen)).combine_chunks()
        self._batches, self._keys, self._numbers = table.to_batches(), [keys[chosen]], [numbers[chosen]]
        self._limit = float(keys[chosen].max())
