"""Writing tables to files, batch by batch; a file appears under its name only when it is complete."""

from __future__ import annotations

import json
import lzma
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from ptad.errors import DataError
from ptad.files import sync_folder, unwritable
from ptad.tables.sources import COMPRESSIONS, FORMATS


def write_table(table: Any, path: Any) -> None:
    """Write a whole Arrow table; see :class:`TableWriter`."""
    with TableWriter(path, table.schema) as writer:
        for batch in table.to_batches():
            writer.write(batch)


class TableWriter:
    """Appends record batches to a CSV, TSV, Parquet, Feather or JSON lines file.

    Text formats may be compressed (.gz .bz2 .zst .lz4 .xz). Rows go to a temporary file beside the target, which takes
    its name on :meth:`close`; leaving the ``with`` block by an exception removes it. Values are written as they are,
    and text in CSV is always quoted, so that it reads back as text.

    Parameters
    ----------
    path : path or "-"
        Target; the suffix decides the format. "-" writes CSV to standard output, and nothing before the first batch.
    schema : pyarrow.Schema
        Columns of every batch.
    name : path, optional
        What errors call the file, where it is moved to its place afterwards.
    """

    def __init__(self, path: Any, schema: pa.Schema, name: Any = None) -> None:
        self.path, self.schema, self.name = Path(path), schema, path if name is None else name
        self._to_stdout = str(path) == "-"
        self._format, compression = ("csv", None) if self._to_stdout else _format_of(self.path, self.name)
        self._temporary: Path | None = None
        self._sink: Any = None
        self._file: Any = None
        self._writer: Any = None
        if not self._to_stdout:
            with self._guarded():
                self._open(compression)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        with self._guarded():
            if self._file is None:
                self._open(None)
            if self._writer is not None:
                self._writer.write_batch(batch)
            else:
                self._sink.write(_json_rows(batch))

    def close(self) -> None:
        """Complete the file and give it its name."""
        with self._guarded():
            if self._writer is not None:
                self._writer.close()
            if self._sink is not self._file:
                self._sink.close()
            if self._temporary is not None:
                self._finish(self._temporary)
            elif self._file is not None:
                self._file.flush()

    def abort(self) -> None:
        """Give up: nothing is left behind, and a file that was there before stays."""
        if self._temporary is None:
            return
        for part in (self._writer, self._sink, self._file):
            with suppress(Exception):  # what could not be written is thrown away in any case
                if part is not None:
                    part.close()
        self._temporary.unlink(missing_ok=True)
        self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _open(self, compression: str | None) -> None:
        if self._to_stdout:
            self._file = sys.stdout.buffer
        else:
            temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.part")
            self._file = temporary.open("xb")
            self._temporary = temporary
        self._sink = self._file
        if compression == "xz":
            self._sink = lzma.LZMAFile(self._file, "wb")  # noqa: SIM115 - closed by close and abort
        elif compression is not None:
            self._sink = pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), compression)
        if self._format in ("csv", "tsv"):
            options = pcsv.WriteOptions(delimiter="\t" if self._format == "tsv" else ",")
            self._writer = pcsv.CSVWriter(self._sink, self.schema, write_options=options)
        elif self._format == "parquet":
            self._writer = pq.ParquetWriter(self._sink, self.schema, compression="zstd")
        elif self._format == "arrow":
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._sink, self.schema, options=options)

    def _finish(self, temporary: Path) -> None:
        if not self._file.closed:  # some compressors close what they write to
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        temporary.replace(self.path)
        sync_folder(self.path.parent)
        self._temporary = None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Whatever goes wrong, no half-written file stays."""
        try:
            yield
        except BrokenPipeError:  # the reader of standard output has gone: not this file's business
            raise
        except (OSError, pa.ArrowException) as error:
            self.abort()
            raise unwritable(self.name, error, DataError) from error
        except BaseException:
            self.abort()
            raise


def _format_of(path: Path, name: Any) -> tuple[str, str | None]:
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    kind = FORMATS.get(inner.suffix.lower())
    if kind is None or (compression and kind in ("parquet", "arrow")):
        raise DataError(
            f"{name}: the suffix {''.join(path.suffixes[-2:])!r} names no format that can be written. Use one of "
            f"{', '.join(FORMATS)}, text formats also with {', '.join(COMPRESSIONS)}."
        )
    return kind, compression


def _json_rows(batch: pa.RecordBatch) -> bytes:
    # JSON has no NaN: a missing number is null
    columns = [
        pc.if_else(pc.is_finite(c), c, pa.scalar(None, c.type)) if pa.types.is_floating(c.type) else c
        for c in batch.columns
    ]
    rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
