"""The file that a scoring leaves: which of its columns were added, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ptad.jobs.score import added_schema
from ptad.service.jobs.table_scores import PREFIX, REASONS


@dataclass(frozen=True)
class ScoredFile:
    """A scored table on the disk; its added columns come last, under a prefix if their plain names were taken."""

    path: Path
    schema: pa.Schema

    @classmethod
    def open(cls, path: Path) -> ScoredFile:
        """Read the header only."""
        return cls(path, pq.read_schema(path))

    @property
    def own(self) -> list[str]:
        """The table's own columns."""
        return list(self.schema.names[: -len(added_schema(REASONS))])

    @property
    def prefix(self) -> str:
        """What stands before the names of the added columns."""
        return PREFIX if self.schema.names[len(self.own)] == f"{PREFIX}score" else ""

    def start(self, name: str, rows: int) -> pa.Array:
        """The first cells of a column."""
        with pq.ParquetFile(self.path) as file:
            first = next(file.iter_batches(batch_size=rows, columns=[name], use_threads=False), None)
        return pa.nulls(0, self.schema.field(name).type) if first is None else first.column(0)

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Scores, p-values and flags of all rows."""
        names = [self.prefix + name for name in added_schema(0).names]
        found = pq.read_table(self.path, columns=names)
        score, p_value, flag = (found.column(name).to_numpy() for name in names)
        return score, p_value, flag.astype(bool)
