"""The functions that run inside the :mod:`ptad.service.sandbox`: they read tables and rows of unknown origin.

Every row is read once, so that scoring the file later, batch by batch, cannot fail on a value.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError
from ptad.jobs.batches import known_columns
from ptad.service.json_rows import (
    MOST_LISTED,
    bad_cell_fields,
    encode_rows,
    ignored_columns,
    parse_rows,
    replace_markers,
    required_columns,
)
from ptad.service.settings import Limits
from ptad.tables import BadCells, Schema, TableScan, TableSource, scan_table
from ptad.tables.column_types import Reading, reason_to_exclude, type_of_array
from ptad.tables.file_formats import JSON_LINES, WORKBOOK
from ptad.tables.inference import infer_readings
from ptad.tables.places import located
from ptad.tables.schema_fit import has_semicolons
from ptad.tables.source import LONGEST_LINE, READ_ERRORS, Source, line_too_long
from ptad.tables.sources import find_sources
from ptad.tables.spreadsheet import read_sheet
from ptad.tables.values import decoded, without_missing

BATCH_ROWS = 16384
PROFILE_ROWS = 50_000  # rows that types, examples and values are taken from
MOST_VALUES = 20  # distinct values of a column that may be a label
EXAMPLES = 3
TEXT_LENGTH = 60


def read_json_rows(limits: Limits, path: Path, name: str, most: int, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of a JSON body with the columns that a model uses, and the names of the others."""
    rows, fitted = parse_rows(path.read_bytes(), most, limits.columns), Schema.from_json(schema)
    names = required_columns(fitted)
    cells = [{name: row[name] for name in names if name in row} for row in rows]
    return {"rows": cells, "ignored": ignored_columns(fitted, rows)}


def encoded_json(
    limits: Limits, path: Path, name: str, schema: dict[str, Any], out: Path, missing: Sequence[str], strict: bool
) -> dict[str, Any]:
    """Write the rows of a JSON body to ``out``, encoded for a model; return their number and fields of the answer."""
    rows = replace_markers(parse_rows(path.read_bytes(), limits.json_rows, limits.columns), missing)
    fitted, bad = Schema.from_json(schema), BadCells(strict=strict)
    encode_rows(fitted, rows, bad).tofile(out)
    ((n_bad, first_bad),) = bad.split([len(rows)], MOST_LISTED)
    return {"rows": len(rows), "ignored": ignored_columns(fitted, rows), **bad_cell_fields(n_bad, first_bad)}


def table_rows(
    limits: Limits, path: Path, name: str, schema: dict[str, Any], out: Path, append: bool, strict: bool
) -> dict[str, Any]:
    """Convert a table to an Arrow file, having encoded every row once: scoring it later cannot fail on a value."""
    _prepare(limits, path, name, None)
    fitted, counts = Schema.from_json(schema), Counter[str]()
    scan = _open_table(limits, path, name, fitted, fitted.missing)
    columns = scan.schema
    inputs, _ = known_columns(fitted, columns.names, None)
    written = columns.names if append else inputs
    n_rows = 0
    out_schema = pa.schema([columns.field(column) for column in written])
    with pa.OSFile(str(out), "wb") as sink, pa.ipc.new_file(sink, out_schema) as writer:
        for batch in scan:
            bad = BadCells(strict=strict)
            with located(scan.places.after(n_rows)):
                fitted.encode(batch.select(inputs), bad)
            counts.update(bad.counts)
            writer.write_batch(batch.select(written))
            n_rows += batch.num_rows
    return {"inputs": inputs, "bad_cells": counts.total()}


def profile(limits: Limits, path: Path, name: str, sheet: str | None, missing: Sequence[str]) -> dict[str, Any]:
    """Decompress the file in place, and describe its columns: types, examples, missing values, problems."""
    file_format = _prepare(limits, path, name, sheet)
    scan = _open_table(limits, path, name, None, missing)
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in scan:
        if n_rows < PROFILE_ROWS:
            batches.append(batch)
        n_rows += batch.num_rows
    table = pa.Table.from_batches(batches, schema=scan.schema).combine_chunks()
    arrays = {column: _array(table.column(column), missing) for column in scan.schema.names}
    usable = {column: array for column, array in arrays.items() if _is_usable(column, array)}
    readings, notes = infer_readings(usable, {}, semicolons=has_semicolons(table))
    return {
        "rows": n_rows,
        "bytes": path.stat().st_size,
        "format": file_format,
        "columns": [_describe(column, array, readings.get(column)) for column, array in arrays.items()],
        "notes": [note.text for note in notes],  # without the option: the page has a field for it, or none
    }


def _prepare(limits: Limits, path: Path, name: str, sheet: str | None) -> str:
    """Refuse archives and endless headers, decompress the file in place, and return the format that it had."""
    source = find_sources(path, sheet, name)[0]
    plain = _decompress(limits, source, name)
    if plain.format.is_text:
        check_header(path, name, limits.columns, is_json=plain.format == JSON_LINES)
    return source.format.name


def _decompress(limits: Limits, source: Source, name: str) -> Source:
    """Replace a compressed file or a workbook by its content, unless that is too large."""
    path, most = source.path, limits.table_bytes
    too_large = DataError(f"{name} grows beyond {most:,} bytes when it is unpacked. Send a smaller table.")
    plain = path.with_name("plain")
    if source.format == WORKBOOK:
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
    size, header_checked = 0, False
    try:
        with source.open() as stream, plain.open("wb") as file:
            while block := stream.read(2**20):
                size += len(block)
                if size > most:
                    raise too_large
                file.write(block)
                if size > LONGEST_LINE and not header_checked:  # before gigabytes of an endless line are on the disk
                    file.flush()
                    check_header(plain, name, limits.columns)
                    header_checked = True
    except READ_ERRORS as error:
        raise source.damaged(error) from error
    if not size:
        raise DataError(f"{name} is empty. Give a file with a header and rows.")
    plain.replace(path)
    content = find_sources(path, None, name)[0]
    if content.compression is not None:
        raise DataError(f"{name} is compressed twice. Decompress it once and send it again.")
    return content


def check_header(path: Path, name: str, columns: int, *, is_json: bool | None = None) -> None:
    """Refuse a header of endless length or with too many columns before it is parsed.

    Only bytes are counted, so this is safe outside the sandbox, too; a binary file is left to its reader.
    """
    length, counts = 0, dict.fromkeys((b",", b";", b"\t", b"|"), 0)
    with path.open("rb") as file:
        while length < LONGEST_LINE and (block := file.read(2**16)):
            if is_json is None:
                if any(byte < 9 for byte in block[:4096]):  # no text has these, all compressed and binary files do
                    return
                is_json = block.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
            line = re.split(rb"[\r\n]", block, maxsplit=1)[0]
            length += len(line)
            for delimiter in counts:
                counts[delimiter] += line.count(delimiter)
            if not is_json and max(counts.values()) >= columns:
                raise _too_wide(name, columns)
            if len(line) < len(block):
                return
    if length >= LONGEST_LINE:
        raise line_too_long(name)


def _open_table(limits: Limits, path: Path, name: str, schema: Schema | None, missing: Sequence[str]) -> TableScan:
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


def _describe(name: str, array: pa.Array, reading: Reading | None) -> dict[str, Any]:
    """Return the description of a column; without a reading it cannot be used."""
    exclusion = None if reading is None else reason_to_exclude(array, reading, identifiers=True)
    problem = None if exclusion is None else exclusion.phrase()
    if reading is None:
        problem = f"values of type {array.type} cannot be used"
    present = array.drop_null()
    texts = map(display_text, present[:200].to_pylist())
    values = None
    with suppress(pa.ArrowException):
        if 0 < pc.count_distinct(present).as_py() <= MOST_VALUES:
            counts = sorted(present.value_counts().to_pylist(), key=lambda entry: -entry["counts"])
            values = [[display_text(entry["values"]), entry["counts"]] for entry in counts]
    return {
        "name": name,
        "type": reading.type if reading else None,
        "problem": problem,
        "exclusion": None if exclusion is None else exclusion.code,
        "examples": list(dict.fromkeys(texts))[:EXAMPLES],
        "values": values,
        "missing": array.null_count / max(len(array), 1),
    }


def display_text(value: Any) -> str:
    """Return a short text for a cell: a number has six digits, and powers of ten only if it is very small or large."""
    text = str(value)
    if isinstance(value, float):
        is_whole = value.is_integer() and abs(value) < 1e15
        text = str(int(value)) if is_whole else f"{value:.6g}"
        if "e" in text and 1e-9 < abs(value) < 1e15:
            text = np.format_float_positional(float(text), trim="-")
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"
