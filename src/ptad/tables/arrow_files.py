"""Parquet and Arrow files (Feather, IPC streams), which have column types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.tables.places import sheet_numbering
from ptad.tables.source import READ_ERRORS, ReadOptions, Source, TableFile, check_names


def open_parquet(source: Source, options: ReadOptions) -> TableFile:
    """Read the schema and the number of rows of a Parquet file."""

    def batches() -> Iterator[pa.RecordBatch]:
        with _parquet(source) as file:
            yield from file.iter_batches(batch_size=options.batch_rows, use_threads=False)

    with _parquet(source) as file:
        return _table_file(source, options, file.schema_arrow, file.metadata.num_rows, batches)


def open_arrow(source: Source, options: ReadOptions) -> TableFile:
    """Read the schema and the number of rows of an Arrow file or stream."""

    def batches() -> Iterator[pa.RecordBatch]:
        with _arrow(source) as reader:
            yield from _valid_batches(reader)

    with _arrow(source) as reader:
        n_rows = sum(batch.num_rows for batch in _valid_batches(reader))
        return _table_file(source, options, reader.schema, n_rows, batches)


def arrow_writer(sink: Any, schema: pa.Schema) -> Any:
    """Open a writer of an Arrow file."""
    return pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


def _table_file(
    source: Source,
    options: ReadOptions,
    schema: pa.Schema,
    n_rows: int,
    batches: Callable[[], Iterator[pa.RecordBatch]],
) -> TableFile:
    check_names(source.label, schema.names)
    options.types.add(schema)
    return TableFile(schema.names, n_rows, batches, sheet_numbering(schema))


@contextmanager
def _parquet(source: Source) -> Iterator[pq.ParquetFile]:
    with _content(source) as path, pq.ParquetFile(path, pre_buffer=False) as file:
        yield file


@contextmanager
def _arrow(source: Source) -> Iterator[Any]:
    with _content(source) as path, pa.OSFile(str(path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


@contextmanager
def _content(source: Source) -> Iterator[Any]:
    try:
        with source.open_random() as path:
            yield path
    except (*READ_ERRORS, UnicodeDecodeError) as error:  # names in a damaged footer may not be UTF-8
        raise source.damaged(error) from error


def _valid_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
        batch.validate(full=True)  # Arrow trusts the buffers: a wrong length would crash the process
        yield batch
