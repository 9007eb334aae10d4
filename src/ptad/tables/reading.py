"""Reading tables from files: whole, or in batches at constant memory."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ptad.errors import DataError
from ptad.tables.delimited import DELIMITER
from ptad.tables.number_format import check_signs
from ptad.tables.places import Places
from ptad.tables.source import ReadOptions, Source, TableFile
from ptad.tables.sources import find_sources
from ptad.tables.type_inference import TypeInference, converted

if TYPE_CHECKING:
    from ptad.tables.schema import Schema


@dataclass(frozen=True)
class TableSource:
    """A table with options for reading it: ``scan_table(TableSource("sales.xlsx", sheet="2014"))``.

    Attributes
    ----------
    source : path, folder, glob, "-", a list of those, or Query
        Where the rows are.
    sheet : str, optional
        Sheet of a workbook, by name or by number from 1.
    decimal, thousands : str, optional
        Signs of numbers in text; by default those of the model, or inferred from the values.
    label : str, optional
        The name of the table in messages; by default its path.
    """

    source: Any
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    label: str | None = None

    def __str__(self) -> str:
        return str(self.source)


def as_source(source: Any) -> TableSource:
    """Wrap a source without options."""
    return source if isinstance(source, TableSource) else TableSource(source)


def read_table(
    source: Any, *, missing: Sequence[str] = (), encoding: str = "utf-8", schema: Schema | None = None
) -> pa.Table:
    """Read a table into memory; the parameters are those of :func:`scan_table`."""
    scan = scan_table(source, missing=missing, encoding=encoding, schema=schema)
    return pa.Table.from_batches(list(scan), schema=scan.schema)


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
        and others) or .ods. "-" is standard input; its format is detected from its first bytes. Several files are read
        in the order of their names. A :class:`Query` reads from a database, and a :class:`TableSource` adds the sheet
        of a workbook, or the decimal and thousands signs.
    batch_rows : int
        Rows per batch; only the last batch is shorter.
    missing : sequence of str
        Text that becomes null, compared after stripping blanks. In CSV, empty cells and the unquoted words NA, N/A,
        n/a, #N/A, NaN, NULL and None do as well.
    encoding : str
        Encoding of CSV, TSV and JSON lines.
    schema : Schema, optional
        The schema of a model: its text and categorical columns, and those whose text has a format of its own, are read
        as text, never as numbers.
    most_columns : int, optional
        Limit for JSON lines, whose columns are known only at the end: an error is raised as soon as there are more.

    Returns
    -------
    TableScan
        An iterator over record batches with an attribute ``schema``.
    """
    table = as_source(source)
    check_signs(table.decimal, table.thousands)
    sources = find_sources(table.source, table.sheet, table.label)
    types = TypeInference(schema, table.decimal, table.thousands)
    return TableScan(sources, ReadOptions(types, max(int(batch_rows), 1), encoding, tuple(missing), most_columns))


class TableScan(Iterator[pa.RecordBatch]):
    """Batches of one or more files, made by :func:`scan_table`.

    ``schema`` is the Arrow schema of every batch, ``label`` names the files, ``places`` are those of the rows.
    """

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        if not sources:
            raise DataError("No file was given. Name at least one.")
        self.sources = sources
        self.label = sources[0].label if len(sources) == 1 else f"{sources[0].label} and {len(sources) - 1} more files"
        self._options = options
        self._files: list[TableFile] = []
        for source in sources:  # the first pass
            file = source.format.open(source, options)
            if file.close is not None:
                weakref.finalize(self, file.close)  # also if the scan is not read to its end
            self._files.append(file)
            source.check_unchanged()
            self._check_columns(source)
        metadata = {DELIMITER: b";"} if options.types.semicolons else None
        self.schema = options.types.result(self.label).with_metadata(metadata)
        counts = [file.n_rows for file in self._files]
        self.n_rows = None if None in counts else sum(n for n in counts if n)
        if self.n_rows == 0:
            raise DataError(f"{self.label} has a header but no rows. Give a file with rows.")
        self._batches = self._equal_batches()

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    @property
    def places(self) -> Places:
        """The places of the rows in their files."""
        files = zip(self.sources, self._files, strict=True)
        return Places(tuple((source.label, file.n_rows or 0, file.numbering) for source, file in files))

    def _check_columns(self, source: Source) -> None:
        """Raise if the last file does not have the columns of the first one."""
        first: Collection[str] = next((file.names for file in self._files if file.names), ())
        last = self._files[-1]
        if not last.may_lack_columns and (different := sorted(set(last.names) ^ set(first))):
            raise DataError(
                f"{source.label} and {self.sources[0].label} do not have the same columns: "
                f"{', '.join(map(repr, different))} is only in one of them. Give files of one table."
            )

    def _equal_batches(self) -> Iterator[pa.RecordBatch]:
        """Second pass: batches of equal size."""
        parts: list[pa.RecordBatch] = []
        n_missing = self._options.batch_rows
        for batch in self._converted_batches():
            while batch.num_rows >= n_missing:
                yield _concatenated([*parts, batch.slice(0, n_missing)])
                batch, parts, n_missing = batch.slice(n_missing), [], self._options.batch_rows
            if batch.num_rows:
                parts.append(batch)
                n_missing -= batch.num_rows
        if parts:
            yield _concatenated(parts)

    def _converted_batches(self) -> Iterator[pa.RecordBatch]:
        for source, file in zip(self.sources, self._files, strict=True):
            source.check_unchanged()
            for batch in file.batches():
                yield _cast(self._options.without_missing(batch), self.schema, source)
            source.check_unchanged()


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # which copies even a single one


def _cast(batch: pa.RecordBatch, schema: pa.Schema, source: Source) -> pa.RecordBatch:
    columns = []
    for f in schema:
        i = batch.schema.get_field_index(f.name)
        if i < 0:  # a key that no line of a block of JSON has
            columns.append(pa.nulls(batch.num_rows, f.type))
            continue
        try:
            columns.append(converted(batch.column(i), f.type))
        except pa.ArrowException as error:
            raise DataError(f"{source.label}, column {f.name!r}: {error}. Give it one type in all files.") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
