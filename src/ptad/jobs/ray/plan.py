"""The rows of a table cut into units of work, each a run of rows of the whole table.

Units lie on the same grid as the local engine's batches, so that a row is scored in the same company. They are read
from Parquet, of which any rows can be reached at once; other formats are first copied to Parquet beside the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.errors import DataError
from ptad.tables import TableScan, TableWriter

_UNITS_PER_COPY = 64

#: (path, first row in the file, number of rows)
Slice = tuple[str, int, int]


@dataclass(frozen=True)
class Unit:
    """Rows ``start`` to ``start + rows`` of the table, and where they are."""

    start: int
    rows: int
    slices: tuple[Slice, ...]

    @property
    def part(self) -> str:
        """Name of its output; sorted names are the order of the rows."""
        return f"part-{self.start:015d}.parquet"


def parquet_files(scan: TableScan, copies: Path, step: int) -> list[tuple[str, int]]:
    """Return the table as (Parquet file, number of rows), copied if it is in another format."""
    if all(source.format == "parquet" and source.compression is None for source in scan.sources):
        found = []
        for source in scan.sources:
            with pq.ParquetFile(source.path) as file:
                found.append((str(source.path.resolve()), int(file.metadata.num_rows)))
        return found
    copies.mkdir(exist_ok=True)
    return list(_copied(scan, copies, step))


def _copied(scan: TableScan, folder: Path, step: int) -> Iterator[tuple[str, int]]:
    """Copy the rows, a file for every few units; files that an interrupted run left whole are kept."""
    start, batches = 0, iter(scan)
    while True:
        path = folder / f"rows-{start:015d}.parquet"
        rows = 0
        if path.exists():
            rows = sum(batch.num_rows for batch in _few(batches))
        else:
            first = next(batches, None)
            if first is None:
                return
            with TableWriter(path, scan.schema) as writer:
                for batch in _few(batches, first):
                    writer.write(batch)
                    rows += batch.num_rows
        if not rows:
            return
        yield str(path.resolve()), rows
        start += rows
        if rows < _UNITS_PER_COPY * step:
            return


def _few(batches: Iterator[pa.RecordBatch], first: pa.RecordBatch | None = None) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
    for _ in range(_UNITS_PER_COPY - (first is not None)):
        batch = next(batches, None)
        if batch is None:
            return
        yield batch


def make_units(files: list[tuple[str, int]], step: int) -> list[Unit]:
    """Cut the files, taken as one table, into units of ``step`` rows; only the last one is shorter."""
    units: list[Unit] = []
    slices: list[Slice] = []
    start = held = 0
    for path, n_rows in files:
        place = 0
        while place < n_rows:
            count = min(step - held, n_rows - place)
            slices.append((path, place, count))
            place, held = place + count, held + count
            if held == step:
                units.append(Unit(start, held, tuple(slices)))
                start, held, slices = start + held, 0, []
    if held:
        units.append(Unit(start, held, tuple(slices)))
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
    table = pa.concat_tables(tables).combine_chunks()
    return table.to_batches()[0]


def _rows(file: pq.ParquetFile, first: int, count: int) -> pa.Table:
    """Rows of a file; only the row groups that hold some of them are read."""
    groups, before, passed = [], 0, 0
    for i in range(file.metadata.num_row_groups):
        n_rows = file.metadata.row_group(i).num_rows
        if passed + n_rows <= first:
            before = passed + n_rows
        elif passed < first + count:
            groups.append(i)
        passed += n_rows
    # batch by batch, since a row group may be much larger than a unit
    place, kept = before, []
    for batch in file.iter_batches(batch_size=count, row_groups=groups, use_threads=False):
        low, high = max(first - place, 0), min(first + count - place, batch.num_rows)
        if low < high:
            kept.append(batch.slice(low, high - low))
        place += batch.num_rows
        if place >= first + count:
            break
    return pa.Table.from_batches(kept, schema=file.schema_arrow)
