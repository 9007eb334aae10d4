"""Reading tables from files: whole, or in batches at constant memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ptad.errors import DataError
from ptad.tables.arrow_files import arrow_batches, arrow_shape
from ptad.tables.delimited import DELIMITER, DelimitedFile
from ptad.tables.json_lines import json_batches
from ptad.tables.names import no_column
from ptad.tables.number_format import check_signs
from ptad.tables.places import Counting, Places, counting_of
from ptad.tables.query_readers import OpenQuery, open_query
from ptad.tables.sources import Source, find_sources
from ptad.tables.spreadsheet import read_sheet
from ptad.tables.type_finder import TypeFinder, converted
from ptad.tables.values import cleaned

if TYPE_CHECKING:
    from ptad.tables.schema import Schema


@dataclass(frozen=True)
class TableSource:
    """A table with what its reader cannot know: ``scan_table(TableSource("sales.xlsx", sheet="2014"))``.

    Attributes
    ----------
    source : path, folder, glob, "-", a list of those, or Query
        Where the rows are.
    sheet : str, optional
        Sheet of a workbook, by name or by number from 1.
    decimal, thousands : str, optional
        Signs in numbers that are written as text; by default those of the model, or what the values show.
    label : str, optional
        What messages call the table; by default its path.
    """

    source: Any
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    label: str | None = None

    def __str__(self) -> str:
        return str(self.source)


def as_source(source: Any) -> TableSource:
    """A table with its wishes, or without any."""
    return source if isinstance(source, TableSource) else TableSource(source)


def read_table(
    source: Any,
    *,
    missing: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
    schema: Schema | None = None,
) -> pa.Table:
    """Read a table into memory.

    Parameters are those of :func:`scan_table`; ``columns`` picks columns by name, in that order.
    """
    scan = scan_table(source, missing=missing, encoding=encoding, schema=schema)
    if columns is not None:
        absent = [c for c in columns if c not in scan.schema.names]
        if absent:
            raise DataError(no_column(scan.label, absent, scan.schema.names))
    table = pa.Table.from_batches(list(scan), schema=scan.schema)
    return table if columns is None else table.select(list(columns))


def scan_table(
    source: Any,
    *,
    batch_rows: int = 65536,
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    schema: Schema | None = None,
    most_columns: int | None = None,
) -> TableScan:
    """Read a table batch by batch, in the order of the rows.

    Parameters
    ----------
    source : path, folder, glob, "-", a list of those, Query, or TableSource
        CSV, TSV, Parquet, Feather (Arrow IPC) or JSON lines, compressed or not (.gz .bz2 .zst .lz4 .xz), Excel (.xlsx
        and the like) or .ods. "-" is standard input; its format is found from its first bytes. Several files follow
        each other in the order of their names. A :class:`Query` reads from a database, and a :class:`TableSource` adds
        the sheet of a workbook, or the decimal and thousands signs.
    batch_rows : int
        Rows per batch; only the last batch is shorter.
    missing : sequence of str
        Text that becomes null, compared after stripping blanks. In CSV, empty cells and the unquoted words NA, N/A,
        NaN, NULL and None do as well.
    encoding : str
        Encoding of CSV, TSV and JSON lines.
    schema : Schema, optional
        A fitted schema: its text and categorical columns, and those whose text has a format of its own, are read as
        text, never as numbers.
    most_columns : int, optional
        JSON lines, whose columns are known only at the end: the file is refused as soon as it has more.

    Returns
    -------
    TableScan
        An iterator over record batches with an attribute ``schema``.
    """
    wish = as_source(source)
    check_signs(wish.decimal, wish.thousands)
    signs = (wish.decimal, wish.thousands)
    sources = find_sources(wish.source, wish.sheet, wish.label)
    return TableScan(sources, batch_rows, tuple(missing), encoding, schema, signs, most_columns)


class TableScan(Iterator[pa.RecordBatch]):
    """Batches of one or more files.

    ``schema`` is the Arrow schema of every batch, ``label`` names the files, ``places`` says where its rows are.
    """

    def __init__(
        self,
        sources: list[Source],
        batch_rows: int,
        missing: tuple[str, ...],
        encoding: str,
        fitted: Schema | None,
        signs: tuple[str | None, str | None] = (None, None),
        most_columns: int | None = None,
    ) -> None:
        if not sources:
            raise DataError("No file was given. Name at least one.")
        self.sources = sources
        self.label = sources[0].label if len(sources) == 1 else f"{sources[0].label} and {len(sources) - 1} more files"
        self._missing, self._encoding, self._batch_rows = missing, encoding, max(int(batch_rows), 1)
        self._finder, self._most_columns = TypeFinder(fitted, *signs), most_columns
        self._sheets: dict[Source, pa.Table] = {}  # a workbook is read once, as a whole
        self._queries: dict[Source, OpenQuery] = {}  # so are the rows of a database, in batches
        self._counts: list[int | None] = []  # rows of every file, None where a database does not say
        self._countings: list[Counting] = []  # how they are counted
        self._look()
        metadata = {DELIMITER: b";"} if self._finder.semicolons else None
        self.schema = self._finder.found(self.label).with_metadata(metadata)
        self.n_rows = None if None in self._counts else sum(n for n in self._counts if n)
        if self.n_rows == 0:
            raise DataError(f"{self.label} has a header but no rows. Give a file with rows.")
        self._batches = self._rechunked(self._batch_rows)

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    @property
    def places(self) -> Places:
        """Where the rows are in their files."""
        counts = [n or 0 for n in self._counts]
        return Places(tuple(zip([s.label for s in self.sources], counts, self._countings, strict=True)))

    def _look(self) -> None:
        """First pass: the types that hold every value of every file; how many rows each file has."""
        first: set[str] = set()
        for source in self.sources:
            names, n_rows, metadata = self._look_at(source)
            source.check_unchanged()
            self._counts.append(n_rows)
            self._countings.append(counting_of(source.format, metadata))
            first = first or set(names)
            if source.format != "jsonl" and (odd := sorted(set(names) ^ first)):
                raise DataError(
                    f"{source.label} and {self.sources[0].label} do not have the same columns: "
                    f"{', '.join(map(repr, odd))} is only in one of them. Give files of one table."
                )

    def _look_at(self, source: Source) -> tuple[Iterable[str], int | None, Mapping[bytes, bytes] | None]:
        """The columns of a file, whose types go to the finder, its number of rows, and its metadata."""
        n_rows: int | None = 0
        if source.format in ("csv", "tsv"):
            file = DelimitedFile(source, self._encoding)
            self._finder.semicolons |= file.delimiter == ";"
            self._finder.add(pa.schema([(name, pa.null()) for name in file.header]))
            for batch in file.batches():
                self._finder.add_text(cleaned(batch, self._missing))
                n_rows += batch.num_rows
            return file.header, n_rows, None
        if source.format == "jsonl":
            keys: dict[str, None] = {}
            for batch in json_batches(source, self._encoding, (), self._most_columns):
                self._finder.add_json(batch.schema)
                keys |= dict.fromkeys(batch.schema.names)
                n_rows += batch.num_rows
            return keys, n_rows, None
        if source.format == "excel":
            table = self._sheets[source] = read_sheet(source)
            n_rows, schema = table.num_rows, table.schema
        elif source.query is not None:
            opened = self._queries[source] = open_query(source.query, source.label, self._batch_rows)
            weakref.finalize(self, opened.close)  # a scan that is given up leaves no connection open
            n_rows, schema = opened.n_rows, opened.schema
        else:
            n_rows, schema = arrow_shape(source)
        self._finder.add(schema)
        return schema.names, n_rows, schema.metadata

    def _rechunked(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Second pass: batches of equal size."""
        waiting: list[pa.RecordBatch] = []
        held = 0
        for batch in self._converted():
            while held + batch.num_rows >= batch_rows:
                need = batch_rows - held
                yield _joined([*waiting, batch.slice(0, need)])
                batch, waiting, held = batch.slice(need), [], 0
            if batch.num_rows:
                waiting.append(batch)
                held += batch.num_rows
        if held:
            yield _joined(waiting)

    def _converted(self) -> Iterator[pa.RecordBatch]:
        for source in self.sources:
            source.check_unchanged()
            for batch in self._of(source):
                yield _cast(cleaned(batch, self._missing), self.schema, source)
            source.check_unchanged()

    def _of(self, source: Source) -> Iterator[pa.RecordBatch]:
        if source.format in ("csv", "tsv"):
            yield from DelimitedFile(source, self._encoding).batches()
        elif source.format == "jsonl":
            yield from json_batches(source, self._encoding, self._finder.mixed, self._most_columns)
        elif source.format == "excel":
            yield from self._sheets[source].to_batches()
        elif source in self._queries:
            with closing(self._queries[source]) as opened:
                yield from opened.batches
        else:
            yield from arrow_batches(source, self._batch_rows)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _cast(batch: pa.RecordBatch, schema: pa.Schema, source: Source) -> pa.RecordBatch:
    columns = []
    for f in schema:
        place = batch.schema.get_field_index(f.name)
        if place < 0:  # a JSON line may leave a key out
            columns.append(pa.nulls(batch.num_rows, f.type))
            continue
        try:
            columns.append(converted(batch.column(place), f.type))
        except pa.ArrowException as error:
            raise DataError(f"{source.label}, column {f.name!r}: {error}. Give it one type in all files.") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
