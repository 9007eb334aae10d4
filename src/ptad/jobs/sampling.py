"""Training rows from files of any size: all of them, or a uniform sample that fits into memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError, SettingError
from ptad.jobs.labels import check_label, equals, listed
from ptad.tables import Schema, scan_table
from ptad.tables.places import Places

logger = logging.getLogger("ptad")

MAX_ROWS = 1_000_000
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Sample:
    """Rows to fit on.

    Attributes
    ----------
    table : pyarrow.Table
        The rows, in the order of the files.
    places : Places
        Where they are in the files.
    rows_read : int
        Rows in the files.
    rows_normal : int
        Rows that the label calls normal; all rows without a label.
    """

    table: pa.Table
    places: Places
    rows_read: int
    rows_normal: int

    @property
    def is_partial(self) -> bool:
        """Whether the limit kept some rows away."""
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
    """Read the normal rows of a table, at most ``max_rows`` of them, every row with the same chance.

    The files are read batch by batch, so memory is bounded by about twice the sample. The same seed and files give the
    same sample. The label column stays in the table: drop it when fitting. ``schema`` is that of a model, for rows that
    it takes in.
    """
    if max_rows < 2:
        raise SettingError(f"--max-rows must be at least 2. Got {max_rows} instead.")
    if (label is None) != (not normal):
        raise SettingError("--label COLUMN and --normal VALUE belong together: give both or none.")
    scan = scan_table(source, missing=missing, encoding=encoding, schema=schema)
    if label is not None:
        check_label(label, scan.schema.names, scan.label)
    reservoir = _Reservoir(max_rows, np.random.default_rng(seed), scan.schema)
    read = 0
    for batch in scan:
        numbers = np.arange(read, read + batch.num_rows)
        read += batch.num_rows
        if label is not None:
            reservoir.saw(batch.column(label))
            is_normal = equals(batch.column(label), normal)
            batch, numbers = batch.filter(pa.array(is_normal)), numbers[is_normal]
        reservoir.add(batch, numbers)
        if progress is not None:
            progress(read, scan.n_rows)
    if label is not None and not reservoir.offered:
        raise DataError(
            f"{scan.label} has no normal rows: no value of the label column {label!r} is "
            f"{' or '.join(map(repr, normal))}. Its values are: {listed(reservoir.seen_labels())}."
        )
    sample = Sample(*reservoir.rows(scan.places), read, reservoir.offered)
    if sample.is_partial:
        logger.warning(
            "training on a uniform sample of %d of %d rows; raise --max-rows to use more",
            sample.table.num_rows,
            sample.rows_normal,
        )
    return sample


class _Reservoir:
    """A uniform sample of a stream: every row draws a random key, and the rows with the smallest keys stay."""

    def __init__(self, size: int, rng: np.random.Generator, schema: pa.Schema) -> None:
        self.size, self.rng, self.schema = size, rng, schema
        self.offered = 0
        self._limit = 1.0
        self._held = 0
        self._keys: list[NDArray[np.float64]] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._batches: list[pa.RecordBatch] = []
        self._labels: pa.Array | None = None

    def saw(self, labels: pa.Array) -> None:
        """Remember some of the label's values, for the error that no row is normal."""
        if self._labels is None:
            self._labels = labels.unique()[:1000]

    def seen_labels(self) -> pa.Array:
        return self._labels if self._labels is not None else pa.nulls(0)

    def add(self, batch: pa.RecordBatch, numbers: NDArray[np.int64]) -> None:
        keys = self.rng.random(batch.num_rows)
        self.offered += batch.num_rows
        stays = keys < self._limit
        if not stays.all():
            batch, keys, numbers = batch.filter(pa.array(stays)), keys[stays], numbers[stays]
        self._keys.append(keys)
        self._numbers.append(numbers)
        self._batches.append(batch)
        self._held += len(keys)
        if self._held > 2 * self.size:
            self._shrink()

    def rows(self, places: Places) -> tuple[pa.Table, Places]:
        if self._held > self.size:
            self._shrink()
        numbers = np.concatenate([*self._numbers, np.empty(0, dtype=np.int64)])
        return pa.Table.from_batches(self._batches, schema=self.schema), places.picked(numbers)

    def _shrink(self) -> None:
        keys, numbers = np.concatenate(self._keys), np.concatenate(self._numbers)
        chosen = np.sort(np.argpartition(keys, self.size - 1)[: self.size])  # sorted: the order of the files
        # `take` copies, so the batches that the rows came from can be freed
        table = pa.Table.from_batches(self._batches, schema=self.schema).take(pa.array(chosen)).combine_chunks()
        self._batches, self._keys, self._held = table.to_batches(), [keys[chosen]], self.size
        self._numbers = [numbers[chosen]]
        self._limit = float(keys[chosen].max())
