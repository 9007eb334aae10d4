"""Sources of tables: files, folders, globs and standard input, with their format and compression."""

from __future__ import annotations

import glob
import lzma
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ptad.errors import DataError, Option
from ptad.tables.database import Query
from ptad.tables.names import repeated

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")  # read, not written
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
}
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # new and old workbooks
TEXT_FORMATS = ("csv", "tsv", "jsonl")
LONGEST_LINE = 1 << 24
MOST_COLUMNS = 50_000  # of any table: work is done and memory taken for every one of them
READ_ERRORS = (pa.ArrowException, OSError, EOFError, lzma.LZMAError)


@dataclass(frozen=True)
class Source:
    """One file to read, or a query on a database."""

    path: Path  # for standard input that of a temporary copy
    label: str  # its name in errors
    format: str  # one of those of FORMATS, "excel" or "query"
    compression: str | None  # one of those of COMPRESSIONS
    state: tuple[int, int]  # size and modification time when it was found
    sheet: str | None = None  # of a workbook
    query: Query | None = None

    def check_unchanged(self) -> None:
        """Raise if the file has been modified since it was found."""
        try:
            same = self.format == "query" or _state(self.path) == self.state
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
            copy = _temporary_copy(stream)
        try:
            yield copy
        finally:
            copy.unlink(missing_ok=True)

    def not_text(self, encoding: str, error: Exception, likely: str = "latin-1") -> DataError:
        """The error for bytes that are not text in this encoding."""
        return DataError(
            f"{self.label} is not {encoding} text ({error}).",
            "Name its encoding, for example with {}.",
            (Option("encoding", likely),),
            "Save it as UTF-8.",
        )

    def damaged(self, error: BaseException) -> DataError:
        """The error for content that cannot be read."""
        kind = "a workbook" if self.format == "excel" else self.format
        reason = getattr(error, "strerror", None) or error  # the whole text of an OSError holds the path
        return DataError(f"{self.label} is damaged, truncated or not {kind}: {reason}. Fetch or write it again.")


def check_names(label: str, names: Sequence[str]) -> None:
    """Raise if there are too many columns, or if a name occurs twice."""
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{label} has more than {MOST_COLUMNS:,} columns. Give a table with fewer.")
    if duplicates := repeated(names):
        raise DataError(f"{label}: duplicate column names {', '.join(map(repr, duplicates))}. Rename them.")


def line_too_long(label: str, line: str = "the first line") -> DataError:
    """The error for a line that is too long for a table."""
    return DataError(f"{label}: {line} is longer than {LONGEST_LINE:,} bytes. This is not a table; check its format.")


def find_sources(source: Any, sheet: str | None = None, label: str | None = None) -> list[Source]:
    """Find the files of a path, a folder, a glob, "-" (standard input), a query, or a list of those.

    Files of a folder (with its subfolders; without hidden ones and those that begin with ``_``) and of a glob are in
    the order of their names. ``sheet`` is that of workbooks, an error where no file is one. ``label`` is the name of
    the table in messages.
    """
    sources = _find(source, label)
    if sheet is None:
        return sources
    if all(s.format != "excel" for s in sources):
        label = sources[0].label if sources else "The table"
        raise DataError(f"{label} is not a workbook, so that it has no sheets.", "Leave out {}.", (Option("sheet"),))
    return [replace(s, sheet=str(sheet)) for s in sources]


def _find(source: Any, label: str | None) -> list[Source]:
    if isinstance(source, Query):
        database = source.database
        path, label = database.path or Path(database.kind), label or f"The query on {database.label}"
        return [Source(path, label, "query", None, (0, 0), query=source)]
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [s for part in source for s in _find(part, label and f"{label}: {Path(part).name}")]
    if str(source) == "-":
        return [_standard_input(sys.stdin.buffer)]
    path = Path(source)
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.is_file() and not _is_hidden(p.relative_to(path)))
        files = [p for p in paths if format_of(p)[0] is not None]
        if not files:
            raise DataError(
                f"The folder {label or path} holds no table. Files that can be read end in: "
                f"{', '.join((*FORMATS, *WORKBOOKS))}."
            )
        return [_file_source(p, label and f"{label}: {p.relative_to(path)}") for p in files]
    if not path.exists() and glob.has_magic(str(source)):
        files = sorted(Path(p) for p in glob.glob(str(source), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not files:
            raise DataError(f"No file matches {label or str(source)!r}. Check the pattern and the folder.")
        return [_file_source(p, label and f"{label}: {p.name}") for p in files]
    return [_file_source(path, label)]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_", "~$")) for part in path.parts)  # ~$ is Excel's mark of an open workbook


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _file_source(path: Path, label: str | None = None) -> Source:
    label = label or str(path)
    try:
        state = _state(path)
        with path.open("rb") as file:
            start = file.read(8)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {label}. Check the path.") from error
    except OSError as error:
        raise DataError(
            f"{label} cannot be read: {error.strerror or error}. Check the path and its permissions."
        ) from error
    if not start:
        raise DataError(f"{label} is empty. Give a file with a header and rows.")
    if start.startswith((_ZIP, _OLE)):
        if not is_workbook(path):
            raise DataError(f"{label} is a zip archive. Unpack it and name the table inside.")
        return Source(path, label, "excel", None, state)
    file_format, compression = format_of(path)
    if compression is None:
        compression = next((c for magic, c in _MAGIC.items() if start.startswith(magic)), None)
    source = Source(path, label, file_format or "csv", compression, state)
    return source if file_format else replace(source, format=_detected_format(source))


def is_workbook(path: Path) -> bool:
    """Whether a file is an Excel workbook or an OpenDocument spreadsheet, by its content."""
    try:
        with path.open("rb") as file:
            if file.read(8) == _OLE:
                return True
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            return any(n.startswith("xl/workbook.") for n in names) or (
                "mimetype" in names and b"opendocument.spreadsheet" in archive.read("mimetype")[:100]
            )
    except (zipfile.BadZipFile, OSError, RuntimeError):
        return path.suffix.lower() in WORKBOOKS  # its reader says what is wrong with it


def format_of(path: Path) -> tuple[str | None, str | None]:
    """Format and compression of a file by its suffixes, each None if unknown."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    suffix = inner.suffix.lower()
    return ("excel" if suffix in WORKBOOKS else FORMATS.get(suffix)), compression


def _detected_format(source: Source) -> str:
    """The format of a file by its first bytes."""
    try:
        with source.open() as stream:
            start = bytes(stream.read(4096))
    except READ_ERRORS as error:
        raise source.damaged(error) from error
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return "jsonl"
    first = text.split(b"\n", 1)[0]
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def _standard_input(stream: IO[bytes]) -> Source:
    """Copy standard input to a temporary file: it is read twice, with constant memory."""
    start = stream.read(LONGEST_LINE)
    is_binary = start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", _ZIP, _OLE, *_MAGIC))
    if len(start) == LONGEST_LINE and not is_binary and b"\n" not in start and b"\r" not in start:
        raise line_too_long("standard input")  # before all of it is on the disk
    copy = _temporary_copy(stream, start)
    try:
        source = _file_source(copy, "standard input")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    weakref.finalize(source, copy.unlink, missing_ok=True)
    return source


def _temporary_copy(stream: IO[bytes], start: bytes = b"") -> Path:
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
