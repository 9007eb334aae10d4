"""JSON lines: one object per line. Files are read in blocks of whole lines."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pjson

from ptad.errors import DataError
from ptad.tables.conversion import objects_to_arrow
from ptad.tables.places import LINES
from ptad.tables.source import (
    LONGEST_LINE,
    MOST_COLUMNS,
    READ_ERRORS,
    ReadOptions,
    Source,
    TableFile,
    line_too_long,
)

BLOCK_BYTES = 1 << 23
MAX_DEPTH = 32  # of nested objects and lists, which Arrow and Python parse by recursion
BLOCK_CELLS = 1 << 24  # rows times columns of the table of one block
FIRST_BYTES, FEW_KEYS = 1 << 14, 40
# A string, with the colon that makes it a key. It always matches, if need be to the end of the block, so that the time
# is linear.
_STRING = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)(\s*+:)?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")], _STEPS[list(b"}]")] = 1, -1


def open_json_lines(source: Source, options: ReadOptions) -> TableFile:
    """Infer the types of the columns, and count the rows."""
    keys: dict[str, None] = {}
    n_rows = 0
    for batch in _batches(source, options.encoding, (), options.most_columns):
        options.types.add_json(batch.schema)
        keys |= dict.fromkeys(batch.schema.names)
        n_rows += batch.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        return _batches(source, options.encoding, options.types.mixed, options.most_columns)

    return TableFile(keys, n_rows, batches, LINES, may_lack_columns=True)


class JsonLinesWriter:
    """A writer of JSON lines, with the methods of Arrow's writers."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink = sink

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        self._sink.write(json_rows(batch))

    def close(self) -> None:
        """Do nothing: there is no footer."""


def json_rows(batch: pa.RecordBatch, *, ensure_ascii: bool = False) -> bytes:
    """One JSON object per row and line; NaN and infinity, which JSON does not have, become null."""
    columns = [
        pc.if_else(pc.is_finite(c), c, pa.scalar(None, c.type)) if pa.types.is_floating(c.type) else c
        for c in batch.columns
    ]
    rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return "".join(json.dumps(row, ensure_ascii=ensure_ascii, default=str) + "\n" for row in rows).encode()


def _batches(
    source: Source, encoding: str, as_text: Collection[str] = (), most_columns: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches with the types of each block; columns in ``as_text`` are text as in the file.

    A file with more different keys than ``most_columns`` is an error, raised before they become columns.
    """
    line = 1
    for block in _limit_columns(_blocks(source, encoding), source.label, most_columns or MOST_COLUMNS):
        table = _parsed(source, block, line, as_text)
        line += block.count(b"\n")
        yield from table.combine_chunks().to_batches()


def _blocks(source: Source, encoding: str) -> Iterator[bytes]:
    try:
        with source.open() as raw:
            stream = io.BufferedReader(raw) if encoding.lower() in ("utf-8", "utf8") else _recoded(raw, encoding)
            prefix = b"\xef\xbb\xbf"
            while block := stream.read(BLOCK_BYTES):
                end_of_line = stream.readline(LONGEST_LINE)
                if len(end_of_line) >= LONGEST_LINE and not end_of_line.endswith(b"\n"):
                    raise line_too_long(source.label, "a line")
                block = block.removeprefix(prefix) + end_of_line
                if prefix and block.lstrip().startswith(b"["):
                    raise DataError(f"{source.label} is one JSON array. Write one object per line instead.")
                prefix = b""  # only the first block may have it
                yield block
    except UnicodeError as error:
        raise source.not_text(encoding, error) from error
    except READ_ERRORS as error:
        raise source.damaged(error) from error


def _limit_columns(blocks: Iterator[bytes], label: str, most: int) -> Iterator[bytes]:
    """Split blocks so that a table of all their keys is of limited size, although few lines may have most keys.

    More than ``most`` different keys are an error.
    """
    seen: set[bytes] = set()
    for block in blocks:
        parts = [block]
        while parts:
            part = parts.pop()
            keys = _keys(part, seen)
            seen |= keys
            if len(seen) > most:
                raise DataError(
                    f"{label} has more than {most:,} columns: so many different keys are in its lines. Give a table "
                    "with fewer."
                )
            middle = part.find(b"\n", len(part) // 2) + 1
            if len(keys) * part.count(b"\n") > BLOCK_CELLS and 0 < middle < len(part):
                parts += [part[middle:], part[:middle]]
            else:
                yield part


def _keys(block: bytes, seen: set[bytes]) -> set[bytes]:
    """The different keys of a block at all depths, without parsing it."""
    known = seen or _all_keys(block[:FIRST_BYTES])
    # if it has only a few known keys, counting them is much faster than finding each
    if len(known) <= FEW_KEYS and sum(block.count(key + b":") for key in known) == block.count(b'":'):
        return known
    return _all_keys(block)


def _all_keys(block: bytes) -> set[bytes]:
    return {match[1] for match in _STRING.finditer(block) if match[2] is not None}


def _recoded(raw: Any, encoding: str) -> Any:
    try:
        return codecs.EncodedFile(raw, "utf-8", encoding)
    except LookupError as error:
        raise DataError(f"There is no encoding {encoding!r}. Use a name such as utf-8 or latin-1.") from error


def _parsed(source: Source, block: bytes, line: int, as_text: Collection[str]) -> pa.Table:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise source.not_text("utf-8", error) from error
    _check_depth(source, block, line)
    if not block.strip():
        return pa.table({})
    if not as_text:
        options = pjson.ReadOptions(use_threads=False, block_size=len(block) + 1)
        with suppress(pa.ArrowInvalid):  # a column of several types, or an error whose line is found below
            return pjson.read_json(io.BytesIO(block), read_options=options)
    rows = _parse_lines(source, block, line)
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({n: _column(n, [row.get(n) for row in rows], n in as_text) for n in names})


def _check_depth(source: Source, block: bytes, line: int) -> None:
    """Raise if objects and lists are nested too deeply, within one line or over many."""
    unquoted = b"".join(block.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    steps = _STEPS[np.frombuffer(unquoted.translate(None, _NO_BRACKETS), np.uint8)]
    if np.cumsum(steps, dtype=np.int64).max(initial=0) <= MAX_DEPTH:
        return
    depth = np.cumsum(_STEPS[np.frombuffer(unquoted, np.uint8)], dtype=np.int64)
    number = line + unquoted.count(b"\n", 0, int(np.argmax(depth > MAX_DEPTH)))
    raise DataError(
        f"{source.label}, line {number}: more than {MAX_DEPTH} objects or lists inside each other. Give every value a "
        "column of its own."
    )


def _column(name: str, values: list[Any], as_text: bool) -> pa.Array:
    types = set(map(type, values)) - {type(None)}
    if as_text or (str in types and len(types) > 1):
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        return pa.array(texts, pa.large_string())
    return objects_to_arrow(name, values)


def _parse_lines(source: Source, block: bytes, line: int) -> list[dict[str, Any]]:
    """The objects of a block, parsed line by line: Arrow does not tell the line of an error."""
    rows = []
    for i, text in enumerate(block.split(b"\n"), start=line):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            raise DataError(f"{source.label}, line {i}: not a JSON object ({error}). Correct or remove it.") from error
        if not isinstance(row, dict):
            raise DataError(f"{source.label}, line {i}: {type(row).__name__} in place of a JSON object. Correct it.")
        rows.append(row)
    return rows
