"""Media types of requests and answers; tables as bytes, batch by batch; CSV without formulas."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from starlette.requests import Request
from starlette.responses import Response

from ptad.tables import file_formats
from ptad.tables.json_lines import json_rows
from ptad.tables.values import decoded

JSON = "application/json"
CSV, NDJSON, ARROW, PARQUET = (
    f.media_types[0] for f in (file_formats.CSV, file_formats.JSON_LINES, file_formats.ARROW, file_formats.PARQUET)
)
ANSWER_FORMATS = {"csv": CSV, "ndjson": NDJSON, "arrow": ARROW, "parquet": PARQUET}
UPLOAD_FORMATS = sorted(
    {
        *(kind for file_format in file_formats.FORMATS for kind in file_format.media_types),
        "application/octet-stream",
        "application/gzip",
    }
)

# What a spreadsheet takes for the start of a formula or of a command, also after blanks and marks that it skips
# (separators, controls, formats), in full and small width of East Asian text, and as superscript or subscript.
_WIDE = r"\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}\x{FF5C}\x{FF05}\x{FE66}\x{FE62}\x{FE63}\x{FE6B}\x{FE6A}"
_SIGN = rf"[=+\-@|%{_WIDE}\x{{2212}}\x{{207A}}-\x{{207C}}\x{{208A}}-\x{{208C}}]"
_FORMULA = rf"^([\s\pZ\pC]*{_SIGN}|[\t\r\n])"
_NUMBER = r"^ *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *$"


class Encoder:
    """Encodes record batches; ``write`` and ``close`` return the bytes that are ready."""

    def __init__(self, media_type: str, schema: pa.Schema) -> None:
        self.media_type, self.schema = media_type, schema
        self._sink = _Buffer()
        self._writer: Any = None
        if media_type == CSV:
            names = _escape_formulas(pa.array(schema.names, pa.large_string())).to_pylist()
            types = [_csv_type(field.type) for field in schema]
            self._csv_schema = pa.schema(list(zip(names, types, strict=True)))
            self._writer = pcsv.CSVWriter(self._sink, self._csv_schema)
        elif media_type == ARROW:
            self._writer = pa.ipc.new_stream(self._sink, schema)
        elif media_type == PARQUET:
            self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Encode a batch."""
        if self.media_type == CSV:
            batch = pa.RecordBatch.from_arrays(list(map(_escape_formulas, batch.columns)), schema=self._csv_schema)
        if self._writer is None:
            self._sink.write(json_rows(batch, ensure_ascii=True))
        else:
            self._writer.write_batch(batch)
        return self._sink.drain()

    def close(self) -> bytes:
        """Write what a format has at its end."""
        if self._writer is not None:
            self._writer.close()
        return self._sink.drain()


class _Buffer(io.RawIOBase):
    """A file in memory that is emptied while it is written; Parquet asks for the position in the whole file."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._n_drained = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        before = len(self._bytes)
        self._bytes += data
        return len(self._bytes) - before

    def tell(self) -> int:
        return self._n_drained + len(self._bytes)

    def drain(self) -> bytes:
        """Return what was written since the last call."""
        block = bytes(self._bytes)
        self._n_drained += len(block)
        self._bytes.clear()
        return block


async def encode(media_type: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> AsyncIterator[bytes]:
    """Yield the bytes of a table; batches are read and encoded outside the event loop."""
    encoder = Encoder(media_type, schema)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        yield await asyncio.to_thread(encoder.write, batch)
    yield encoder.close()


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column in CSV: everything but numbers, booleans and times is text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    plain = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return kind if plain and not pa.types.is_interval(kind) else pa.large_string()


def _escape_formulas(column: pa.Array) -> pa.Array:
    """Put an apostrophe before text that a spreadsheet would compute; numbers written as text stay."""
    column = decoded(column)
    if not pa.types.is_large_string(_csv_type(column.type)):
        return column
    if not pa.types.is_large_string(column.type):  # bytes, lists and the like
        column = pa.array(map(_text, column.to_pylist()), pa.large_string())
    suspect = pc.and_(pc.match_substring_regex(column, _FORMULA), pc.invert(pc.match_substring_regex(column, _NUMBER)))
    if not pc.any(suspect).as_py():
        return column
    quoted = pc.binary_join_element_wise(pa.scalar("'", pa.large_string()), column, pa.scalar("", pa.large_string()))
    return pc.if_else(suspect, quoted, column)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def negotiate(accept: str | None, sent: str) -> str:
    """Return the media type of an answer: what is accepted, or else what was sent, or else CSV."""
    accepted = [part.split(";")[0].strip() for part in (accept or "").lower().split(",")]
    return next((kind for kind in (*accepted, sent) if kind in ANSWER_FORMATS.values()), CSV)


def media_type(request: Request) -> str:
    """Return the media type of a body."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def json_response(content: Any) -> Response:
    """Return an answer in JSON; dates and the like become text."""
    return Response(json.dumps(content, default=str), media_type=JSON)
