"""Writing of tables to files, batch by batch; a file takes its name only when it is complete."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from ptad.errors import DataError
from ptad.files import NewFile, write_error
from ptad.tables.sources import COMPRESSIONS, FORMATS, format_of

_WRITABLE = ("csv", "tsv", "parquet", "arrow", "jsonl")  # formats that TableWriter can write; others are only read


def write_table(table: Any, path: Any) -> None:
    """Write a whole Arrow table; see :class:`TableWriter`."""
    with TableWriter(path, table.schema) as writer:
        for batch in table.to_batches():
            writer.write(batch)


class TableWriter:
    """Append record batches to a CSV, TSV, Parquet, Feather or JSON lines file.

    Text formats may be compressed (.gz .bz2 .zst .lz4 .xz). Rows are written to a temporary file beside the target,
    which takes its name on :meth:`close`; an exception in the ``with`` block removes it. Text in CSV is always quoted,
    so that it is read back as text.

    Parameters
    ----------
    path : path or "-"
        Target; the suffix decides the format. "-" writes CSV to standard output, and nothing before the first batch.
    schema : pyarrow.Schema
        Columns of every batch.
    name : path, optional
        The name of the file in errors, if it is renamed afterwards.
    """

    def __init__(self, path: Any, schema: pa.Schema, name: Any = None) -> None:
        self.path, self.schema, self.name = Path(path), schema, path if name is None else name
        self._new = None if str(path) == "-" else NewFile(self.path)
        self._format, compression = ("csv", None) if self._new is None else _output_format(self.path, self.name)
        self._streams: list[Any] = []  # the file, the stream that compresses, the writer of the format
        if self._new is not None:
            with self._abort_on_error():
                self._open(self._new.temporary.open("xb"), compression)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        with self._abort_on_error():
            if not self._streams:
                self._open(sys.stdout.buffer, None)
            if self._format == "jsonl":
                self._streams[-1].write(json_rows(batch))
            else:
                self._streams[-1].write_batch(batch)

    def close(self) -> None:
        """Complete the file and give it its name."""
        with self._abort_on_error():
            for stream in reversed(self._streams[1:]):
                stream.close()
            if self._new is not None:
                self._streams[0].close()
                self._new.finish()
            elif self._streams:
                self._streams[0].flush()

    def abort(self) -> None:
        """Remove the temporary file; an older file at the target stays."""
        if self._new is None:
            return
        for stream in reversed(self._streams):
            with suppress(Exception):  # the content is discarded in any case
                stream.close()
        self._new.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _open(self, file: Any, compression: str | None) -> None:
        self._streams = [file]
        if compression == "xz":
            self._streams.append(lzma.LZMAFile(file, "wb"))  # noqa: SIM115 - closed by close and abort
        elif compression is not None:
            self._streams.append(pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), compression))
        sink = self._streams[-1]
        if self._format in ("csv", "tsv"):
            options = pcsv.WriteOptions(delimiter="\t" if self._format == "tsv" else ",")
            self._streams.append(pcsv.CSVWriter(sink, self.schema, write_options=options))
        elif self._format == "parquet":
            self._streams.append(pq.ParquetWriter(sink, self.schema, compression="zstd"))
        elif self._format == "arrow":
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._streams.append(pa.ipc.new_file(sink, self.schema, options=options))

    @contextmanager
    def _abort_on_error(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # of standard output; handled by the command line
            raise
        except (OSError, pa.ArrowException) as error:
            self.abort()
            raise write_error(self.name, error, DataError) from error
        except BaseException:
            self.abort()
            raise


def _output_format(path: Path, name: Any) -> tuple[str, str | None]:
    file_format, compression = format_of(path)
    if file_format not in _WRITABLE or (compression and file_format in ("parquet", "arrow")):
        suffixes = ", ".join(suffix for suffix, format_ in FORMATS.items() if format_ in _WRITABLE)
        raise DataError(
            f"{name}: the suffix {''.join(path.suffixes[-2:])!r} names no format that can be written. Use one of "
            f"{suffixes}, text formats also with {', '.join(COMPRESSIONS)}."
        )
    return str(file_format), compression


def json_rows(batch: pa.RecordBatch, *, ensure_ascii: bool = False) -> bytes:
    """One JSON object per row and line; NaN and infinity, which JSON does not have, become null."""
    columns = [
        pc.if_else(pc.is_finite(c), c, pa.scalar(None, c.type)) if pa.types.is_floating(c.type) else c
        for c in batch.columns
    ]
    rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return "".join(json.dumps(row, ensure_ascii=ensure_ascii, default=str) + "\n" for row in rows).encode()
