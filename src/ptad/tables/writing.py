"""Writing of tables to files, batch by batch; a file takes its name only when it is complete."""

from __future__ import annotations

import lzma
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from ptad.errors import DataError
from ptad.files import NewFile, write_error
from ptad.tables.file_formats import BY_SUFFIX, CSV, FileFormat
from ptad.tables.sources import COMPRESSIONS, format_of


def write_table(table: Any, path: Any) -> None:
    """Write a whole Arrow table; see :class:`TableWriter`."""
    with TableWriter(path, table.schema) as writer:
        for batch in table.to_batches():
            writer.write(batch)


class TableWriter:
    """Append record batches to a CSV, TSV, Parquet, Feather or JSON lines file.

    Text formats may be compressed (.gz .bz2 .zst .lz4 .xz). Rows are written to a temporary file beside the target,
    which takes its name on :meth:`close`; an exception in the ``with`` block removes it. The suffix decides the format;
    "-" writes CSV to standard output, and nothing before the first batch. Errors call the file ``name``.
    """

    def __init__(self, path: Any, schema: pa.Schema, name: Any = None) -> None:
        self.path, self.schema, self.name = Path(path), schema, path if name is None else name
        self._new = None if str(path) == "-" else NewFile(self.path)
        self._format, compression = (CSV, None) if self._new is None else _output_format(self.path, self.name)
        self._streams: list[Any] = []  # the file, the stream that compresses, the writer of the format
        if self._new is not None:
            with self._abort_on_error():
                self._open(self._new.temporary.open("xb"), compression)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        with self._abort_on_error():
            if not self._streams:
                self._open(sys.stdout.buffer, None)
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
        assert self._format.write is not None  # _output_format
        self._streams.append(self._format.write(self._streams[-1], self.schema))

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


def _output_format(path: Path, name: Any) -> tuple[FileFormat, str | None]:
    file_format, compression = format_of(path)
    if file_format is None or file_format.write is None or (compression and not file_format.is_text):
        suffixes = ", ".join(suffix for suffix, format_ in BY_SUFFIX.items() if format_.write is not None)
        raise DataError(
            f"{name}: the suffix {''.join(path.suffixes[-2:])!r} names no format that can be written. Use one of "
            f"{suffixes}, text formats also with {', '.join(COMPRESSIONS)}."
        )
    return file_format, compression
