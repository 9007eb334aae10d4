"""Reading of Parquet and Arrow files (Feather, IPC streams), which have column types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.tables.sources import READ_ERRORS, Source, check_names


def arrow_shape(source: Source) -> tuple[int, pa.Schema]:
    """Number of rows, and schema."""
    with _opened(source) as file:
        if isinstance(file, pq.ParquetFile):
            rows, schema = file.metadata.num_rows, file.schema_arrow
        else:
            rows, schema = sum(batch.num_rows for batch in _ipc_batches(file)), file.schema
    check_names(source.label, schema.names)
    return rows, schema


def arrow_batches(source: Source, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of the file; those of Parquet have ``rows`` rows."""
    with _opened(source) as file:
        if isinstance(file, pq.ParquetFile):
            yield from file.iter_batches(batch_size=rows, use_threads=False)
        else:
            yield from _ipc_batches(file)


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    try:
        with ExitStack() as stack:
            path = stack.enter_context(source.open_random())
            if source.format == "parquet":
                yield stack.enter_context(pq.ParquetFile(path, pre_buffer=False))
            else:
                file = stack.enter_context(pa.OSFile(str(path)))
                is_file = file.read(6) == b"ARROW1"
                file.seek(0)
                yield stack.enter_context(pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file))
    except (*READ_ERRORS, UnicodeDecodeError) as error:  # names in a damaged footer may not be UTF-8
        raise source.damaged(error) from error


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
        batch.validate(full=True)  # Arrow trusts the buffers: a wrong length would crash the process
        yield batch
