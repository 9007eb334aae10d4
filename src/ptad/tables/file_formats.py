"""The file formats of tables. A format is declared here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ptad.tables.arrow_files import arrow_writer, open_arrow, open_parquet
from ptad.tables.delimited import csv_writer, open_delimited
from ptad.tables.json_lines import JsonLinesWriter, open_json_lines
from ptad.tables.query_readers import open_query
from ptad.tables.source import ReadOptions, Source, TableFile
from ptad.tables.spreadsheet import open_sheet


@dataclass(frozen=True)
class FileFormat:
    """A file format."""

    name: str
    title: str  # in messages
    open: Callable[[Source, ReadOptions], TableFile]
    # opens a writer, with the methods ``write_batch`` and ``close``, on a stream of bytes; None if it is only read
    write: Callable[[Any, pa.Schema], Any] | None = None
    suffixes: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    starts: tuple[bytes, ...] = ()  # its first bytes, where they tell it from others
    is_text: bool = False  # text is written compressed if the suffix says so


CSV = FileFormat(
    "csv",
    "CSV",
    open_delimited,
    csv_writer,
    suffixes=(".csv",),
    media_types=("text/csv",),
    is_text=True,
)
TSV = FileFormat(
    "tsv",
    "TSV",
    partial(open_delimited, delimiter="\t"),
    partial(csv_writer, delimiter="\t"),
    suffixes=(".tsv", ".tab"),
    media_types=("text/tab-separated-values",),
    is_text=True,
)
PARQUET = FileFormat(
    "parquet",
    "Parquet",
    open_parquet,
    partial(pq.ParquetWriter, compression="zstd"),
    suffixes=(".parquet", ".pq"),
    media_types=("application/vnd.apache.parquet",),
    starts=(b"PAR1",),
)
ARROW = FileFormat(
    "arrow",
    "Arrow",
    open_arrow,
    arrow_writer,
    suffixes=(".feather", ".arrow", ".ipc"),
    media_types=("application/vnd.apache.arrow.stream",),
    starts=(b"ARROW1", b"\xff\xff\xff\xff"),  # of a file and of a stream
)
JSON_LINES = FileFormat(
    "jsonl",
    "JSON lines",
    open_json_lines,
    JsonLinesWriter,
    suffixes=(".jsonl", ".ndjson", ".json"),
    media_types=("application/x-ndjson",),
    starts=(b"{", b"["),
    is_text=True,
)
WORKBOOK = FileFormat(
    "excel",
    "a workbook",
    open_sheet,
    suffixes=(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    media_types=(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
    starts=(b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),  # new and old ones
)
FORMATS = (CSV, TSV, PARQUET, ARROW, JSON_LINES, WORKBOOK)
BY_SUFFIX = {suffix: file_format for file_format in FORMATS for suffix in file_format.suffixes}

QUERY = FileFormat("query", "the rows of a query", open_query)  # a source like a file, with a connection
