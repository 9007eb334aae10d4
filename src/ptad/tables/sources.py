"""Where rows come from: files, folders, globs and standard input, with their format and compression."""

from __future__ import annotations

import glob
import lzma
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ptad.errors import DataError, Option
from ptad.tables.database import Query

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
DAMAGE = (pa.ArrowException, OSError, EOFError, lzma.LZMAError)


@dataclass(frozen=True)
class Source:
    """One file to read, or a query on a database."""

    path: Path  # where the bytes are; for standard input a temporary copy
    label: str  # what errors call it
    format: str  # one of those of FORMATS, "excel" or "query"
    compression: str | None  # around it
    state: tuple[int, int]  # size and time of change when it was found
    sheet: str | None = None  # of a workbook
    query: Query | None = None

    def check_unchanged(self) -> None:
        """Raise if the file is not the one that was found at the start."""
        try:
            same = self.format == "query" or _state(self.path) == self.state
        except OSError:
            same = False
        if not same:
            raise DataError(f"{self.label} changed while it was read. Wait until it is complete, or read a copy of it.")

    def open(self) -> Any:
        """The decompressed content as a stream of bytes, to be closed.

        Arrow opens it without Python: a reader's threads may be at work when the process ends, and one that asks for
        Python's lock then brings the process down. Only xz, which Arrow does not know, is read by Python.
        """
        if self.compression == "xz":
            return lzma.open(self.path)
        return pa.input_stream(str(self.path), compression=self.compression)

    @contextmanager
    def open_random(self) -> Iterator[Path]:
        """A path to the decompressed content, for formats that are read from the end."""
        if self.compression is None:
            yield self.path
            return
        with self.open() as stream:
            copy = _copied(stream)
        try:
            yield copy
        finally:
            copy.unlink(missing_ok=True)

    def not_text(self, encoding: str, error: Exception, likely: str = "latin-1") -> DataError:
        """The error for bytes that are no text in this encoding."""
        return DataError(
            f"{self.label} is not {encoding} text ({error}).",
            "Name its encoding, for example with {}.",
            (Option("encoding", likely),),
            "Save it as UTF-8.",
        )

    def damaged(self, error: BaseException) -> DataError:
        """The error for content that cannot be read."""
        what = "a workbook" if self.format == "excel" else self.format
        reason = getattr(error, "strerror", None) or error  # the whole text of an error of the system names the path
        return DataError(f"{self.label} is damaged, truncated or not {what}: {reason}. Fetch or write it again.")


def check_names(label: str, names: Sequence[str]) -> None:
    """Raise if there are more columns than a table has, or if a name occurs twice."""
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{label} has more than {MOST_COLUMNS:,} columns. Give a table with fewer.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{label}: duplicate column names {', '.join(map(repr, twice))}. Rename them.")


def endless_line(label: str, line: str = "the first line") -> DataError:
    """The error for a line that no table has."""
    return DataError(f"{label}: {line} is longer than {LONGEST_LINE:,} bytes. This is not a table; check its format.")


def find_sources(source: Any, sheet: str | None = None, label: str | None = None) -> list[Source]:
    """What ``source`` stands for: a path, a folder, a glob, "-" (standard input), a query, or a list of those.

    ``sheet`` is that of workbooks; it is refused where no file is one. ``label`` is what messages call the table.

    Files of a folder (read with its subfolders; hidden ones and those that begin with ``_`` are passed over) and of
    a glob come in the order of their sorted names.
    """
    found = _found(source, label)
    if sheet is None:
        return found
    if all(one.format != "excel" for one in found):
        label = found[0].label if found else "The table"
        raise DataError(f"{label} is not a workbook, so that it has no sheets.", "Leave out {}.", (Option("sheet"),))
    return [replace(one, sheet=str(sheet)) for one in found]


def _found(source: Any, label: str | None) -> list[Source]:
    if isinstance(source, Query):
        database = source.database
        path, label = database.path or Path(database.kind), label or f"The query on {database.label}"
        return [Source(path, label, "query", None, (0, 0), query=source)]
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [found for part in source for found in _found(part, label and f"{label}: {Path(part).name}")]
    if str(source) == "-":
        return [_spooled(sys.stdin.buffer)]
    path = Path(source)
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
        files = [p for p in inside if by_suffix(p)[0] is not None]
        if not files:
            raise DataError(
                f"The folder {label or path} holds no table. Files that can be read end in: "
                f"{', '.join((*FORMATS, *WORKBOOKS))}."
            )
        return [_source(p, label and f"{label}: {p.relative_to(path)}") for p in files]
    if not path.exists() and glob.has_magic(str(source)):
        files = sorted(Path(p) for p in glob.glob(str(source), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not files:
            raise DataError(f"No file matches {label or str(source)!r}. Check the pattern and the folder.")
        return [_source(p, label and f"{label}: {p.name}") for p in files]
    return [_source(path, label)]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_", "~$")) for part in path.parts)  # ~$ is Excel's mark of an open workbook


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _source(path: Path, label: str | None = None) -> Source:
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
    kind, compression = by_suffix(path)
    if compression is None:
        compression = next((c for magic, c in _MAGIC.items() if start.startswith(magic)), None)
    found = Source(path, label, kind or "csv", compression, state)
    return found if kind else replace(found, format=_sniffed(found))


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


def by_suffix(path: Path) -> tuple[str | None, str | None]:
    """Format and compression that the name of a file says, None for each that it does not."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    suffix = inner.suffix.lower()
    return ("excel" if suffix in WORKBOOKS else FORMATS.get(suffix)), compression


def _sniffed(source: Source) -> str:
    try:
        with source.open() as stream:
            start = bytes(stream.read(4096))
    except DAMAGE as error:
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


def _spooled(stream: IO[bytes]) -> Source:
    """Standard input copied to a temporary file: types and formats need a second look, memory stays constant."""
    start = stream.read(LONGEST_LINE)
    other = start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", _ZIP, _OLE, *_MAGIC))
    if len(start) == LONGEST_LINE and not other and b"\n" not in start and b"\r" not in start:
        raise endless_line("standard input")  # now, not after all of it is on the disk
    copy = _copied(stream, start)
    try:
        found = _source(copy, "standard input")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    weakref.finalize(found, copy.unlink, missing_ok=True)
    return found


def _copied(stream: IO[bytes], start: bytes = b"") -> Path:
    """A stream, after what was read of it already, in a temporary file that the caller removes."""
    with tempfile.NamedTemporaryFile(prefix="ptad-", delete=False) as copy:
        path = Path(copy.name)
        try:
            copy.write(start)
            shutil.copyfileobj(stream, copy)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path
