"""Finding the files of a table: paths, folders, globs and standard input, with their format and compression."""

from __future__ import annotations

import glob
import sys
import weakref
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from ptad.errors import DataError
from ptad.tables.database import Query
from ptad.tables.file_formats import BY_SUFFIX, CSV, FORMATS, QUERY, TSV, WORKBOOK, FileFormat
from ptad.tables.source import LONGEST_LINE, READ_ERRORS, Source, file_state, line_too_long, temporary_copy

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
}


def find_sources(source: Any, sheet: str | None = None, label: str | None = None) -> list[Source]:
    """Find the files of a path, a folder, a glob, "-" (standard input), a query, or a list of those.

    Files of a folder (with its subfolders; without hidden ones and those that begin with ``_``) and of a glob are in
    the order of their names. ``sheet`` is that of workbooks, an error where no file is one. ``label`` is the name of
    the table in messages.
    """
    sources = _find(source, label)
    if sheet is None:
        return sources
    if all(s.format != WORKBOOK for s in sources):
        label = sources[0].label if sources else "The table"
        raise DataError(f"{label} is not a workbook and has no sheets.", "Leave out {sheet}.")
    return [replace(s, sheet=str(sheet)) for s in sources]


def _find(source: Any, label: str | None) -> list[Source]:
    if isinstance(source, Query):
        database = source.database
        path, label = database.path or Path(database.kind), label or f"The query on {database.label}"
        return [Source(path, label, QUERY, None, (0, 0), query=source)]
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [s for part in source for s in _find(part, label and f"{label}: {Path(part).name}")]
    if str(source) == "-":
        return [_standard_input(sys.stdin.buffer)]
    path = Path(source)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and format_of(p)[0] is not None)
        # ~$ is Excel's mark of an open workbook
        files = [p for p in files if not any(part.startswith((".", "_", "~$")) for part in p.relative_to(path).parts)]
        if not files:
            raise DataError(
                f"The folder {label or path} holds no table. Files that can be read end in: {', '.join(BY_SUFFIX)}."
            )
        return [_file_source(p, label and f"{label}: {p.relative_to(path)}") for p in files]
    if not path.exists() and glob.has_magic(str(source)):
        files = sorted(Path(p) for p in glob.glob(str(source), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not files:
            raise DataError(f"No file matches {label or str(source)!r}. Check the pattern and the folder.")
        return [_file_source(p, label and f"{label}: {p.name}") for p in files]
    return [_file_source(path, label)]


def _file_source(path: Path, label: str | None = None) -> Source:
    label = label or str(path)
    try:
        state = file_state(path)
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
    if start.startswith(WORKBOOK.starts):
        if not is_workbook(path):
            raise DataError(f"{label} is a zip archive. Unpack it and name the table inside.")
        return Source(path, label, WORKBOOK, None, state)
    file_format, compression = format_of(path)
    if compression is None:
        compression = next((c for magic, c in _MAGIC.items() if start.startswith(magic)), None)
    source = Source(path, label, file_format or CSV, compression, state)
    return source if file_format else replace(source, format=_detected_format(source))


def is_workbook(path: Path) -> bool:
    """Whether a file is an Excel workbook or an OpenDocument spreadsheet, by its content."""
    try:
        with path.open("rb") as file:
            if file.read(8) == WORKBOOK.starts[1]:
                return True
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            return any(n.startswith("xl/workbook.") for n in names) or (
                "mimetype" in names and b"opendocument.spreadsheet" in archive.read("mimetype")[:100]
            )
    except (zipfile.BadZipFile, OSError, RuntimeError):
        return path.suffix.lower() in WORKBOOK.suffixes  # its reader says what is wrong with it


def format_of(path: Path) -> tuple[FileFormat | None, str | None]:
    """Format and compression of a file by its suffixes, each None if unknown."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    return BY_SUFFIX.get(inner.suffix.lower()), compression


def _detected_format(source: Source) -> FileFormat:
    """The format of a file by its first bytes."""
    try:
        with source.open() as stream:
            start = bytes(stream.read(4096))
    except READ_ERRORS as error:
        raise source.damaged(error) from error
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for file_format in FORMATS:
        if (text if file_format.is_text else start).startswith(file_format.starts):
            return file_format
    first = text.split(b"\n", 1)[0]
    return TSV if first.count(b"\t") > first.count(b",") else CSV


def _standard_input(stream: IO[bytes]) -> Source:
    """Copy standard input to a temporary file: it is read twice, with constant memory."""
    start = stream.read(LONGEST_LINE)
    is_binary = start.startswith((*_MAGIC, *(s for f in FORMATS if not f.is_text for s in f.starts)))
    if len(start) == LONGEST_LINE and not is_binary and b"\n" not in start and b"\r" not in start:
        raise line_too_long("standard input")  # before all of it is on the disk
    copy = temporary_copy(stream, start)
    try:
        source = _file_source(copy, "standard input")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    weakref.finalize(source, copy.unlink, missing_ok=True)
    return source
