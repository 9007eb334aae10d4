"""Splits the rows of a table into units of work, each a range of consecutive rows of the whole table.

Units are the same as the batches of the local engine, so that a row is scored together with the same rows. They are
read from Parquet, where any row can be accessed; other formats are first copied to Parquet beside the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ptad.errors import DataError
from ptad.tables import TableScan, write_table
from ptad.tables.file_formats import PARQUET

#: (path, first row in the file, number of rows)
Slice = tuple[str, int, int]


@dataclass(frozen=True)
class Unit:
    """Rows ``start`` to ``start + rows`` of the table, and the files that they are in."""

    start: int
    rows: int
    slices: tuple[Slice, ...]

    @property
    def part(self) -> str:
        """Name of its output file; sorted by name, files are in the order of the rows."""
        return f"part-{self.start:015d}.parquet"


def parquet_files(scan: TableScan, copies: Path) -> Iterator[tuple[str, int]]:
    """Yield the table as (Parquet file, number of rows), copied batch by batch if it is in another format."""
    if all(source.format == PARQUET and source.compression is None for source in scan.sources):
        for source in scan.sources:
            with pq.ParquetFile(source.path) as file:
                yield str(source.path.resolve()), int(file.metadata.num_rows)
        return
    copies.mkdir(exist_ok=True)
    start = 0
    for batch in scan:
        path = copies / f"rows-{start:015d}.parquet"
        if not path.exists():  # an interrupted run may have left it, complete
            write_table(pa.Table.from_batches([batch]), path)
        yield str(path.resolve()), batch.num_rows
        start += batch.num_rows


def make_units(files: list[tuple[str, int]], step: int) -> list[Unit]:
    """Split the files, taken as one table, into units of ``step`` rows; only the last one is shorter."""
    units: list[Unit] = []
    slices: list[Slice] = []
    start = n_rows = 0  # of the unit that is not complete yet
    for path, file_rows in files:
        first = 0
        while first < file_rows:
            count = min(step - n_rows, file_rows - first)
            slices.append((path, first, count))
            first, n_rows = first + count, n_rows + count
            if n_rows == step:
                units.append(Unit(start, n_rows, tuple(slices)))
                start, n_rows, slices = start + n_rows, 0, []
    if n_rows:
        units.append(Unit(start, n_rows, tuple(slices)))
    return units


def read_unit(slices: tuple[Slice, ...], schema: pa.Schema) -> pa.RecordBatch:
    """Read the rows of a unit with the types of the whole table."""
    tables = []
    for path, first, count in slices:
        try:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                tables.append(_rows(file, first, count).select(schema.names).cast(schema))
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{path}, rows {first} to {first + count}, cannot be read: {error}. It must be there, unchanged, on "
                "all machines of the cluster."
            ) from error
    return pa.concat_tables(tables).combine_chunks().to_batches()[0]


def _rows(file: pq.ParquetFile, first: int, count: int) -> pa.Table:
    """Return rows of a file; only the row groups that contain some of them are read."""
    ends = np.cumsum([file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)])
    low, high = np.searchsorted(ends, [first, first + count - 1], side="right")
    position = int(ends[low - 1]) if low else 0  # of the first row of a batch
    batches = []
    # batch by batch, since a row group may be much larger than a unit
    for batch in file.iter_batches(batch_size=count, row_groups=list(range(low, high + 1)), use_threads=False):
        begin, end = max(first - position, 0), min(first + count - position, batch.num_rows)
        if begin < end:
            batches.append(batch.slice(begin, end - begin))
        position += batch.num_rows
        if position >= first + count:
            break
    return pa.Table.from_batches(batches, schema=file.schema_arrow)
