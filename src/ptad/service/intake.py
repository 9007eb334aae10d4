"""Reading what strangers send, in a process of its own with little memory and little time.

Run as ``python -m ptad.service.intake SPEC``. A file that expands without end, one endless line or a damaged block
takes down this process at worst, and the caller is told so. It looks at every row once: whatever reads the file
afterwards, batch by batch, finds nothing that was not there now. Only :mod:`ptad.tables` is needed here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, UserError
from ptad.service.disk import EXIT_FULL, is_full
from ptad.service.rows import renumbered
from ptad.service.store import read_json, write_json
from ptad.tables import Schema, scan_table
from ptad.tables.kinds import detect_kind, reason_to_leave_out
from ptad.tables.sources import DAMAGE, LONGEST_LINE, TEXT_FORMATS, Source, endless_line, find_sources
from ptad.tables.values import decoded, without_missing

BATCH_ROWS = 16384
PROFILE_ROWS = 50_000  # rows that kinds, examples and values are taken from
MOST_VALUES = 20  # different values of a column that may be a label
EXAMPLES = 3
TEXT_LENGTH = 60


def main() -> None:
    """Do what the spec file says and leave ``{"ok": ...}`` or ``{"error": ...}`` in the file that it names."""
    spec = read_json(Path(sys.argv[1]))
    _limit(spec)
    try:
        result: dict[str, Any] = {"ok": _work(spec)}
    except Exception as error:
        if is_full(error):
            sys.exit(EXIT_FULL)
        result = {"error": _reason(error, spec)}
    try:
        write_json(Path(spec["result"]), result)
    except OSError as error:
        sys.exit(EXIT_FULL if is_full(error) else 1)


def _reason(error: Exception, spec: dict[str, Any]) -> str:
    name = spec["name"]
    if isinstance(error, UserError):
        return _without_paths(str(error), spec)
    if isinstance(error, MemoryError | pa.ArrowMemoryError):
        return f"{name} needs more memory than this service gives to one upload. Send a smaller one."
    # the content of a file is no reason for a traceback
    kinds = "a CSV, TSV, Parquet, Arrow or JSON lines table"
    return f"{name} cannot be read ({type(error).__name__}). Check that it is {kinds}."


def _limit(spec: dict[str, Any]) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the time limit of the parent remains
        return
    for what, most in (
        (resource.RLIMIT_AS, spec["memory"]),
        (resource.RLIMIT_CPU, int(spec["seconds"]) + 1),
        (resource.RLIMIT_FSIZE, spec["table_bytes"] + 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _work(spec: dict[str, Any]) -> dict[str, Any]:
    path = Path(spec["path"])
    source = _checked(find_sources(path)[0], path, spec)
    _check_first_line(source, spec)
    if spec.get("schema") is None:
        return _profile(path, spec, source.format)
    return _rows(path, spec)


def _checked(source: Source, path: Path, spec: dict[str, Any]) -> Source:
    """Refuse archives; put the decompressed content in the place of a compressed file, unless it is too large."""
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06", b"Rar!", b"7z\xbc\xaf")):
        raise DataError(f"{path} is an archive. Unpack it and send the table inside; .gz .bz2 .zst .lz4 .xz are read.")
    if source.compression is None:
        return source
    source.check_first_line()
    plain, most = path.with_name("plain"), spec["table_bytes"]
    size = 0
    try:
        with source.open() as stream, plain.open("wb") as file:
            while block := stream.read(2**20):
                size += len(block)
                if size > most:
                    raise DataError(
                        f"{path} grows beyond {most:,} bytes when it is decompressed. Send a smaller table."
                    )
                file.write(block)
    except DAMAGE as error:
        raise source.damaged(error) from error
    if not size:
        raise DataError(f"{path} is empty. Give a file with a header and rows.")
    plain.replace(path)
    found = find_sources(path)[0]
    if found.compression is not None:
        raise DataError(f"{path} is compressed twice. Decompress it once and send it again.")
    return found


def _check_first_line(source: Source, spec: dict[str, Any]) -> None:
    if source.format in TEXT_FORMATS:
        check_header(source.path, spec["columns"], is_json=source.format == "jsonl")


def check_header(path: Path, columns: int, *, is_json: bool | None = None) -> None:
    """Refuse a header of endless length or with countless columns before anything is made of it.

    Only bytes are looked at, so that this is safe wherever it is called; a binary file is left to its reader.
    """
    seen, counts = 0, dict.fromkeys((b",", b";", b"\t", b"|"), 0)
    with path.open("rb") as file:
        while seen < LONGEST_LINE and (piece := file.read(2**16)):
            if is_json is None:
                if any(byte < 9 for byte in piece[:4096]):  # what no text has, and every compressed or binary file
                    return
                is_json = piece.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
            line = re.split(rb"[\r\n]", piece, maxsplit=1)[0]
            seen += len(line)
            for delimiter in counts:
                counts[delimiter] += line.count(delimiter)
            if not is_json and max(counts.values()) >= columns:
                raise _too_wide(path, columns)
            if len(line) < len(piece):
                return
    if seen >= LONGEST_LINE:
        raise endless_line(str(path))


def _batches(path: Path, spec: dict[str, Any], schema: Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    missing = schema.missing if schema is not None else ()
    scan = scan_table(path, batch_rows=BATCH_ROWS, schema=schema, missing=missing, most_columns=spec["columns"])
    if len(scan.schema.names) > spec["columns"]:
        raise _too_wide(path, spec["columns"])
    if scan.n_rows > spec["rows"]:
        raise DataError(f"{path} has {scan.n_rows:,} rows; this service takes {spec['rows']:,}. Send fewer.")
    return scan.schema, iter(scan)


def _too_wide(path: Path, columns: int) -> DataError:
    return DataError(f"{path} has more than {columns:,} columns, the limit of this service. Send fewer.")


def _rows(path: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Convert a table to plain Arrow, having encoded every row once: scoring it later cannot fail on a value."""
    schema = Schema.from_json(read_json(Path(spec["schema"])))
    arrow, batches = _batches(path, spec, schema)
    inputs = set(schema.inputs)
    known = arrow.names if schema.from_array else [n for n in arrow.names if n in inputs]
    kept = arrow.names if spec["append"] else known
    n_rows = 0
    with (
        pa.OSFile(spec["rows_file"], "wb") as sink,
        pa.ipc.new_file(sink, pa.schema([arrow.field(n) for n in kept])) as writer,
    ):
        for batch in batches:
            with renumbered(lambda row, start=n_rows: row + start):  # type: ignore[misc]
                schema.encode(batch.select(known))
            writer.write_batch(batch.select(kept))
            n_rows += batch.num_rows
    return {"rows": n_rows, "ignored": [n for n in arrow.names if n not in inputs][:100], "known": known}


def _profile(path: Path, spec: dict[str, Any], kind: str) -> dict[str, Any]:
    """Say what the columns of a table are, and what is the matter with them."""
    arrow, batches = _batches(path, spec, None)
    held: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if n_rows < PROFILE_ROWS:
            held.append(batch)
        n_rows += batch.num_rows
    table = pa.Table.from_batches(held, schema=arrow)
    return {
        "rows": n_rows,
        "bytes": path.stat().st_size,
        "format": kind,
        "columns": [_column(name, table.column(name)) for name in arrow.names],
    }


def _column(name: str, chunks: pa.ChunkedArray) -> dict[str, Any]:
    array = decoded(pa.concat_arrays(chunks.chunks) if chunks.num_chunks != 1 else chunks.chunk(0))
    entry: dict[str, Any] = {"name": name, "kind": None, "problem": None, "examples": [], "values": None}
    try:
        array = without_missing(array, ())
        entry["kind"] = detect_kind(name, array)
        entry["problem"] = reason_to_leave_out(array, identifiers=True)
    except (DataError, pa.ArrowException):
        entry["problem"] = f"values of type {array.type} cannot be used"
    entry["missing"] = array.null_count / max(len(array), 1)
    present = array.drop_null()
    entry["examples"] = [_text(v) for v in _some(present)]
    try:
        distinct = pc.count_distinct(present).as_py()
        if 0 < distinct <= MOST_VALUES:
            counts = sorted(present.value_counts().to_pylist(), key=lambda e: -e["counts"])
            entry["values"] = [[_text(e["values"]), e["counts"]] for e in counts]
    except pa.ArrowException:
        pass
    return entry


def _some(present: pa.Array) -> list[Any]:
    found: list[Any] = []
    for value in present[:200].to_pylist():
        if value not in found:
            found.append(value)
        if len(found) == EXAMPLES:
            break
    return found


def _text(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"


def _without_paths(message: str, spec: dict[str, Any]) -> str:
    """Callers know a file by the name that they gave it."""
    return message.replace(spec["path"], spec["name"])


if __name__ == "__main__":
    os.nice(5)
    main()
