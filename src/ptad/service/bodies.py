"""Reading tables and rows that strangers send: what runs inside the :mod:`ptad.service.sandbox`.

Every row is looked at once: whatever reads the file afterwards, batch by batch, finds nothing that was not there now.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.service.rows import (
    MOST_LISTED,
    encode_rows,
    ignored_columns,
    parse_rows,
    said_of,
    wanted_columns,
    without_markers,
)
from ptad.service.settings import Limits
from ptad.tables import BadCells, Schema, TableScan, TableSource, scan_table
from ptad.tables.column_types import Reading, reason_to_exclude, type_of_array
from ptad.tables.inference import infer_readings
from ptad.tables.places import located
from ptad.tables.schema_fit import has_semicolons
from ptad.tables.sources import LONGEST_LINE, READ_ERRORS, TEXT_FORMATS, Source, find_sources, line_too_long
from ptad.tables.spreadsheet import read_sheet
from ptad.tables.values import decoded, without_missing

BATCH_ROWS = 16384
PROFILE_ROWS = 50_000  # rows that types, examples and values are taken from
MOST_VALUES = 20  # different values of a column that may be a label
EXAMPLES = 3
TEXT_LENGTH = 60


def json_rows(limits: Limits, path: Path, name: str, most: int, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of a body of JSON with the columns that a model knows, and the names of the others."""
    rows, own = parse_rows(path.read_bytes(), most, limits.columns), Schema.from_json(schema)
    known = wanted_columns(own)
    cells = [{column: row[column] for column in known if column in row} for row in rows]
    return {"rows": cells, "ignored": ignored_columns(own, rows)}


def encoded_json(
    limits: Limits, path: Path, name: str, schema: dict[str, Any], out: Path, missing: Sequence[str], strict: bool
) -> dict[str, Any]:
    """Write the rows of a body of JSON to ``out``, encoded for a model, and return what the answer says of them."""
    rows = without_markers(parse_rows(path.read_bytes(), limits.json_rows, limits.columns), missing)
    own, bad = Schema.from_json(schema), BadCells(strict=strict)
    encode_rows(own, rows, bad).tofile(out)
    ((n_bad, first_bad),) = bad.split([len(rows)], MOST_LISTED)
    return {"rows": len(rows), "ignored": ignored_columns(own, rows), **said_of(n_bad, first_bad)}


def table_rows(
    limits: Limits, path: Path, name: str, schema: dict[str, Any], out: Path, append: bool, strict: bool
) -> dict[str, Any]:
    """Convert a table to plain Arrow, having encoded every row once: scoring it later cannot fail on a value."""
    _prepare(limits, path, name, None)
    own, counts = Schema.from_json(schema), Counter[str]()
    scan = _opened(limits, path, name, own, own.missing)
    arrow = scan.schema
    own.check_columns(arrow.names)
    inputs = set(own.inputs)
    known = arrow.names if own.from_array else [n for n in arrow.names if n in inputs]
    kept = arrow.names if append else known
    n_rows = 0
    with pa.OSFile(str(out), "wb") as sink, pa.ipc.new_file(sink, pa.schema([arrow.field(n) for n in kept])) as writer:
        for batch in scan:
            bad = BadCells(strict=strict)
            with located(scan.places.after(n_rows)):
                own.encode(batch.select(known), bad)
            counts.update(bad.counts)
            writer.write_batch(batch.select(kept))
            n_rows += batch.num_rows
    return {"known": known, "bad_cells": counts.total()}


def profile(limits: Limits, path: Path, name: str, sheet: str | None, missing: Sequence[str]) -> dict[str, Any]:
    """Put plain content in the place of the file, and say what its columns are and what is the matter with them."""
    kind = _prepare(limits, path, name, sheet)
    scan = _opened(limits, path, name, None, tuple(missing))
    held: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in scan:
        if n_rows < PROFILE_ROWS:
            held.append(batch)
        n_rows += batch.num_rows
    table = pa.Table.from_batches(held, schema=scan.schema).combine_chunks()
    arrays = {column: _array(table.column(column), missing) for column in scan.schema.names}
    usable = {column: array for column, array in arrays.items() if _is_usable(column, array)}
    readings, notes = infer_readings(usable, {}, semicolons=has_semicolons(table))
    return {
        "rows": n_rows,
        "bytes": path.stat().st_size,
        "format": kind,
        "columns": [_column(column, array, readings.get(column)) for column, array in arrays.items()],
        "notes": [note.text for note in notes],  # without the option, which the page has as a field or not at all
    }


def _prepare(limits: Limits, path: Path, name: str, sheet: str | None) -> str:
    """Refuse archives and endless headers, make a plain file of a compressed one, and return the format it had."""
    found = find_sources(path, sheet, name)[0]
    source = _plain(limits, found, name)
    if source.format in TEXT_FORMATS:
        check_header(path, name, limits.columns, is_json=source.format == "jsonl")
    return found.format


def _plain(limits: Limits, source: Source, name: str) -> Source:
    """Put plain content in the place of a compressed file or a workbook, unless it is too large."""
    path, most = source.path, limits.table_bytes
    too_large = DataError(f"{name} grows beyond {most:,} bytes when it is unpacked. Send a smaller table.")
    plain = path.with_name("plain")
    if source.format == "excel":
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if sum(member.file_size for member in archive.infolist()) > most:
                    raise too_large
        table = read_sheet(source)
        with pa.OSFile(str(plain), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH_ROWS)
        plain.replace(path)
        return find_sources(path, None, name)[0]
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06", b"Rar!", b"7z\xbc\xaf")):
        raise DataError(f"{name} is an archive. Unpack it and send the table inside; .gz .bz2 .zst .lz4 .xz are read.")
    if source.compression is None:
        return source
    size, looked_at = 0, False
    try:
        with source.open() as stream, plain.open("wb") as file:
            while block := stream.read(2**20):
                size += len(block)
                if size > most:
                    raise too_large
                file.write(block)
                if size > LONGEST_LINE and not looked_at:  # before gigabytes of an endless line are on the disk
                    file.flush()
                    check_header(plain, name, limits.columns)
                    looked_at = True
    except READ_ERRORS as error:
        raise source.damaged(error) from error
    if not size:
        raise DataError(f"{name} is empty. Give a file with a header and rows.")
    plain.replace(path)
    found = find_sources(path, None, name)[0]
    if found.compression is not None:
        raise DataError(f"{name} is compressed twice. Decompress it once and send it again.")
    return found


def check_header(path: Path, name: str, columns: int, *, is_json: bool | None = None) -> None:
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
                raise _too_wide(name, columns)
            if len(line) < len(piece):
                return
    if seen >= LONGEST_LINE:
        raise line_too_long(name)


def _opened(limits: Limits, path: Path, name: str, schema: Schema | None, missing: Sequence[str]) -> TableScan:
    source = TableSource(path, label=name)
    scan = scan_table(source, batch_rows=BATCH_ROWS, schema=schema, missing=tuple(missing), most_columns=limits.columns)
    if len(scan.schema.names) > limits.columns:
        raise _too_wide(name, limits.columns)
    if scan.n_rows is not None and scan.n_rows > limits.rows:
        raise DataError(f"{name} has {scan.n_rows:,} rows; this service takes {limits.rows:,}. Send fewer.")
    return scan


def _too_wide(name: str, columns: int) -> DataError:
    return DataError(f"{name} has more than {columns:,} columns, the limit of this service. Send fewer.")


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
        entry["problem"] = reason_to_exclude(array, reading, identifiers=True)
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
