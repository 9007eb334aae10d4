"""Reading what strangers send, in a process of its own with little memory and little time.

Run as ``python -m ptad.service.sandbox SPEC``. A file that expands without end, one endless line or a damaged block
takes down this process at worst, and the caller is told so. It looks at every row once: whatever reads the file
afterwards, batch by batch, finds nothing that was not there now. Only :mod:`ptad.tables` is needed here.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, UserError
from ptad.service.disk import EXIT_FULL, is_full
from ptad.service.store import read_json, write_json
from ptad.service.words import http_words
from ptad.tables import BadCells, Schema, TableScan, scan_table
from ptad.tables.column_types import Reading, reason_to_leave_out, type_of_array
from ptad.tables.inference import read_columns
from ptad.tables.places import located
from ptad.tables.schema_fit import has_semicolons
from ptad.tables.sources import DAMAGE, LONGEST_LINE, TEXT_FORMATS, Source, endless_line, find_sources
from ptad.tables.spreadsheet import read_sheet
from ptad.tables.values import decoded, without_missing

BATCH_ROWS = 16384
PROFILE_ROWS = 50_000  # rows that types, examples and values are taken from
MOST_VALUES = 20  # different values of a column that may be a label
EXAMPLES = 3
TEXT_LENGTH = 60


def main() -> None:
    """Do what the spec file says and leave ``{"ok": ...}`` or ``{"error": ...}`` in the file that it names."""
    spec = read_json(Path(sys.argv[1]))
    _limit(spec)
    logging.getLogger("ptad").addHandler(logging.NullHandler())
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
    formats = "a CSV, TSV, Parquet, Arrow, JSON lines or Excel table"
    return f"{name} cannot be read ({type(error).__name__}). Check that it is {formats}."


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
    found = find_sources(path, spec.get("sheet"))[0]
    source = _checked(found, path, spec)
    _check_first_line(source, spec)
    if spec.get("schema") is None:
        return _profile(path, spec, found.format)
    return _rows(path, spec)


def _checked(source: Source, path: Path, spec: dict[str, Any]) -> Source:
    """Refuse archives; put plain content in the place of a compressed file or a workbook, unless it is too large."""
    if source.format == "excel":
        return _sheet(source, path, spec)
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


def _sheet(source: Source, path: Path, spec: dict[str, Any]) -> Source:
    """Put the chosen sheet as plain Arrow in the place of a workbook."""
    most = spec["table_bytes"]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > most:
                raise DataError(f"{path} grows beyond {most:,} bytes when it is unpacked. Send a smaller table.")
    table = read_sheet(replace(source, label=spec["name"]))
    plain = path.with_name("plain")
    with pa.OSFile(str(plain), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH_ROWS)
    plain.replace(path)
    return find_sources(path)[0]


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


def _opened(path: Path, spec: dict[str, Any], schema: Schema | None) -> TableScan:
    missing = schema.missing if schema is not None else tuple(spec["missing"])
    scan = scan_table(path, batch_rows=BATCH_ROWS, schema=schema, missing=missing, most_columns=spec["columns"])
    if len(scan.schema.names) > spec["columns"]:
        raise _too_wide(path, spec["columns"])
    if scan.n_rows is not None and scan.n_rows > spec["rows"]:
        raise DataError(f"{path} has {scan.n_rows:,} rows; this service takes {spec['rows']:,}. Send fewer.")
    return scan


def _too_wide(path: Path, columns: int) -> DataError:
    return DataError(f"{path} has more than {columns:,} columns, the limit of this service. Send fewer.")


def _rows(path: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Convert a table to plain Arrow, having encoded every row once: scoring it later cannot fail on a value."""
    schema = Schema.from_json(read_json(Path(spec["schema"])))
    scan, counts = _opened(path, spec, schema), Counter[str]()
    arrow = scan.schema
    schema.check_columns(arrow.names)
    inputs = set(schema.inputs)
    known = arrow.names if schema.from_array else [n for n in arrow.names if n in inputs]
    kept = arrow.names if spec["append"] else known
    n_rows = 0
    with (
        pa.OSFile(spec["rows_file"], "wb") as sink,
        pa.ipc.new_file(sink, pa.schema([arrow.field(n) for n in kept])) as writer,
    ):
        for batch in scan:
            bad = BadCells(strict=spec["strict"])
            with located(scan.places.after(n_rows)):
                schema.encode(batch.select(known), bad)
            counts.update(bad.counts)
            writer.write_batch(batch.select(kept))
            n_rows += batch.num_rows
    ignored = [n for n in arrow.names if n not in inputs][:100]
    return {"rows": n_rows, "ignored": ignored, "known": known, "bad_cells": counts.total()}


def _profile(path: Path, spec: dict[str, Any], kind: str) -> dict[str, Any]:
    """Say what the columns of a table are, and what is the matter with them."""
    scan = _opened(path, spec, None)
    held: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in scan:
        if n_rows < PROFILE_ROWS:
            held.append(batch)
        n_rows += batch.num_rows
    table = pa.Table.from_batches(held, schema=scan.schema).combine_chunks()
    arrays = {name: _array(table.column(name), spec["missing"]) for name in scan.schema.names}
    usable = {name: array for name, array in arrays.items() if _is_usable(name, array)}
    readings, notes = read_columns(usable, {}, semicolons=has_semicolons(table))
    return {
        "rows": n_rows,
        "bytes": path.stat().st_size,
        "format": kind,
        "columns": [_column(name, array, readings.get(name)) for name, array in arrays.items()],
        "notes": [note.text for note in notes],  # without the option, which the page has as a field or not at all
    }


def _array(chunks: pa.ChunkedArray, missing: Sequence[str]) -> pa.Array:
    array = decoded(pa.concat_arrays(chunks.chunks) if chunks.num_chunks != 1 else chunks.chunk(0))
    try:
        return without_missing(array, tuple(missing))
    except pa.ArrowException:
        return array


def _is_usable(name: str, array: pa.Array) -> bool:
    try:
        type_of_array(name, array)
    except (DataError, pa.ArrowException):
        return False
    return True


def _column(name: str, array: pa.Array, reading: Reading | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "type": None, "problem": None, "examples": [], "values": None}
    if reading is None:
        entry["problem"] = f"values of type {array.type} cannot be used"
    else:
        entry["type"] = reading.type
        entry["problem"] = reason_to_leave_out(array, reading, identifiers=True)
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
    text = _number_text(value) if isinstance(value, float) else str(value)
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"


def _number_text(value: float) -> str:
    """Six digits, and no powers of ten where people would not write them; these texts are compared as numbers later."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.6g}"
    return np.format_float_positional(float(text), trim="-") if "e" in text and 1e-9 < abs(value) < 1e15 else text


def _without_paths(message: str, spec: dict[str, Any]) -> str:
    """Callers know a file by the name that they gave it."""
    return http_words(message.replace(spec["path"], spec["name"]))


if __name__ == "__main__":
    os.nice(5)
    main()
