"""Parquet and Arrow files (Feather, IPC streams), which know the types of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.tables.sources import DAMAGE, Source, check_distinct


def arrow_shape(source: Source) -> tuple[int, pa.Schema]:
    """Number of rows, and columns with their types."""
    try:
        with ExitStack() as stack:
            path = stack.enter_context(source.open_random())
            if source.format == "parquet":
                file = stack.enter_context(pq.ParquetFile(path, pre_buffer=False))
                rows, schema = file.metadata.num_rows, file.schema_arrow
            else:
                reader = stack.enter_context(_ipc_reader(stack, path))
                rows, schema = sum(b.num_rows for b in _ipc_batches(reader)), reader.schema
    except DAMAGE as error:
        raise source.damaged(error) from error
    check_distinct(source.label, schema.names)
    return rows, schema


def arrow_batches(source: Source, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows as they are; those of Parquet in batches of ``rows``."""
    try:
        with ExitStack() as stack:
            path = stack.enter_context(source.open_random())
            if source.format == "parquet":
                yield from stack.enter_context(pq.ParquetFile(path, pre_buffer=False)).iter_batches(
                    batch_size=rows, use_threads=False
                )
            else:
                yield from _ipc_batches(stack.enter_context(_ipc_reader(stack, path)))
    except DAMAGE as error:
        raise source.damaged(error) from error


def _ipc_reader(stack: ExitStack, path: Any) -> Any:
    file = stack.enter_context(pa.OSFile(str(path)))
    start = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if start == b"ARROW1" else pa.ipc.open_stream(file)


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader
