"""One file of a table: what its reader gets, and what it returns."""

from __future__ import annotations

import lzma
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from ptad.errors import DataError, Option
from ptad.tables.names import repeated
from ptad.tables.places import RECORDS, RowNumbering
from ptad.tables.values import without_missing_text

if TYPE_CHECKING:
    from ptad.tables.database import Query
    from ptad.tables.file_formats import FileFormat
    from ptad.tables.type_inference import TypeInference

LONGEST_LINE = 1 << 24
MOST_COLUMNS = 50_000  # of any table: work is done and memory taken for every one of them
READ_ERRORS = (pa.ArrowException, OSError, EOFError, lzma.LZMAError)


@dataclass(frozen=True)
class Source:
    """One file to read, or a query on a database."""

    path: Path  # for standard input that of a temporary copy
    label: str  # its name in errors
    format: FileFormat
    compression: str | None  # one of those of COMPRESSIONS
    state: tuple[int, int]  # size and modification time when it was found
    sheet: str | None = None  # of a workbook
    query: Query | None = None

    def check_unchanged(self) -> None:
        """Raise if the file has been modified since it was found."""
        try:
            same = self.query is not None or file_state(self.path) == self.state
        except OSError:
            same = False
        if not same:
            raise DataError(f"{self.label} changed while it was read. Wait until it is complete, or read a copy of it.")

    def open(self) -> Any:
        """Open the decompressed content as a stream of bytes.

        Arrow opens the file, not Python: threads of a reader may be at work when the process ends, and one that takes
        Python's lock then would crash it. Only xz, which Arrow does not know, is read by Python.
        """
        if self.compression == "xz":
            return lzma.open(self.path)
        return pa.input_stream(str(self.path), compression=self.compression)

    @contextmanager
    def open_random(self) -> Iterator[Path]:
        """Yield a path to the decompressed content, for formats that are not read in order."""
        if self.compression is None:
            yield self.path
            return
        with self.open() as stream:
            copy = temporary_copy(stream)
        try:
            yield copy
        finally:
            copy.unlink(missing_ok=True)

    def not_text(self, encoding: str, error: Exception, likely: str = "latin-1") -> DataError:
        """The error for bytes that are not text in this encoding."""
        if isinstance(error, LookupError):
            problem = f"{self.label}: there is no encoding {encoding!r}."
        elif isinstance(error, UnicodeDecodeError):
            problem = f"{self.label} is not {encoding} text (byte 0x{error.object[error.start]:02x})."
        else:
            problem = f"{self.label} is not {encoding} text ({error})."
        return DataError(
            problem,
            "Name its encoding, for example with {encoding}.",
            "Save it as UTF-8.",
            options=(Option("encoding", likely),),
        )

    def damaged(self, error: BaseException) -> DataError:
        """The error for content that cannot be read."""
        # the whole text of an OSError holds the path
        reason = str(getattr(error, "strerror", None) or error).rstrip(".")
        return DataError(
            f"{self.label} is damaged, truncated or not {self.format.title}: {reason}. Fetch or write it again."
        )


@dataclass(frozen=True)
class ReadOptions:
    """How the files of a table are read."""

    types: TypeInference  # of the whole table; every reader adds the columns of its file
    batch_rows: int
    encoding: str
    missing: tuple[str, ...]
    most_columns: int | None  # of files whose columns are known only at the end

    def without_missing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with nulls in place of text that means missing."""
        columns = [without_missing_text(column, self.missing) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@dataclass(frozen=True)
class TableFile:
    """A file after its reader has gone through it once: what a reader returns."""

    names: Collection[str]
    n_rows: int | None  # None where a database does not say
    batches: Callable[[], Iterator[pa.RecordBatch]]  # starts the second pass
    numbering: RowNumbering = RECORDS
    may_lack_columns: bool = False  # whether it may have other columns than the other files of the table
    close: Callable[[], None] | None = None  # for a reader that holds a connection


def check_names(label: str, names: Sequence[str]) -> None:
    """Raise if there are too many columns, or if a name occurs twice."""
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{label} has more than {MOST_COLUMNS:,} columns. Give a table with fewer.")
    if duplicates := repeated(names):
        raise DataError(f"{label}: duplicate column names {', '.join(map(repr, duplicates))}. Rename them.")


def line_too_long(label: str, line: str = "the first line") -> DataError:
    """The error for a line that is too long for a table."""
    return DataError(f"{label}: {line} is longer than {LONGEST_LINE:,} bytes. This is not a table; check its format.")


def file_state(path: Path) -> tuple[int, int]:
    """Return the size and the modification time of a file."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def temporary_copy(stream: IO[bytes], start: bytes = b"") -> Path:
    """Write ``start`` and the rest of a stream to a temporary file, which the caller removes."""
    with tempfile.NamedTemporaryFile(prefix="ptad-", delete=False) as copy:
        path = Path(copy.name)
        try:
            copy.write(start)
            shutil.copyfileobj(stream, copy)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path
