"""Reading tables from files: whole, or in batches at constant memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ptad.errors import DataError
from ptad.messages import Message, Option
from ptad.tables import delimited
from ptad.tables.arrow_files import arrow_batches, arrow_shape
from ptad.tables.column_types import is_foreign
from ptad.tables.database import Query
from ptad.tables.json_lines import json_batches
from ptad.tables.names import did_you_mean
from ptad.tables.number_format import check_signs
from ptad.tables.places import Counting, Places, counting_of
from ptad.tables.sources import Source, find_sources
from ptad.tables.spreadsheet import read_sheet
from ptad.tables.table_source import as_source
from ptad.tables.values import cleaned, is_text

if TYPE_CHECKING:
    from ptad.tables.schema import Schema


logger = logging.getLogger("ptad")


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
            raise DataError(
                f"{scan.label} has no column {', '.join(map(repr, absent))}."
                f"{did_you_mean(absent, scan.schema.names)} Its columns are: "
                f"{', '.join(map(repr, scan.schema.names[:30]))}."
            )
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
    if isinstance(wish.source, Query):
        from ptad.tables.query_scan import QueryScan  # it builds on the scan below

        return QueryScan(wish.source, batch_rows, tuple(missing), schema, wish.label)
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
        self._types = fitted.types if fitted is not None else {}
        self._text = tuple(name for name, type_ in self._types.items() if type_ in ("text", "categorical"))
        self._fitted, self._signs = fitted, signs
        self._sheets: dict[Source, pa.Table] = {}  # a workbook is read once, as a whole
        self._counts: list[int] = []  # rows of every file
        self._countings: list[Counting] = []  # how they are counted
        self._most_columns = most_columns
        self._mixed: set[str] = set()  # columns that are taken as text, since no other type holds all their values
        self.schema, rows = self._look()
        self.n_rows = rows
        if rows == 0:
            raise DataError(f"{self.label} has a header but no rows. Give a file with rows.")
        self._batches = self._rechunked(self._batch_rows)

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    @property
    def places(self) -> Places:
        """Where the rows are in their files."""
        counts = self._counts or [0] * len(self.sources)
        countings = self._countings or [counting_of(source.format) for source in self.sources]
        return Places(tuple(zip([s.label for s in self.sources], counts, countings, strict=True)))

    def _look(self) -> tuple[pa.Schema, int | None]:
        """First pass: the types that hold every value of every file, and whether there are rows at all."""
        formatted = () if self._fitted is None else self._fitted.formatted
        finder = delimited.TypeFinder((*self._text, *formatted), *self._signs)
        fields: dict[str, list[pa.DataType]] = {}
        first: set[str] = set()
        for source in self.sources:
            own, n_rows, metadata = self._look_at(source, finder)
            source.check_unchanged()
            self._counts.append(n_rows)
            self._countings.append(counting_of(source.format, metadata))
            first = first or set(own)
            if source.format != "jsonl" and (odd := sorted(set(own) ^ first)):
                raise DataError(
                    f"{source.label} and {self.sources[0].label} do not have the same columns: "
                    f"{', '.join(map(repr, odd))} is only in one of them. Give files of one table."
                )
            for name, kind in own.items():
                fields.setdefault(name, []).append(kind)
        for name, kind in finder.types().items():  # only now it has seen all files
            fields[name].append(pa.large_string() if is_foreign(self._types.get(name), kind) else kind)
        self._warn_of_signs(finder)
        schema = pa.schema([(name, self._common(name, kinds)) for name, kinds in fields.items()])
        return schema.with_metadata({delimited.DELIMITER: b";"} if finder.semicolons else None), sum(self._counts)

    def _look_at(
        self, source: Source, finder: delimited.TypeFinder
    ) -> tuple[dict[str, pa.DataType], int, Mapping[bytes, bytes] | None]:
        """The types of a file's columns as far as they are known, its number of rows, and its metadata."""
        rows = 0
        if source.format in ("csv", "tsv"):
            finder.semicolons |= delimited.delimiter(source, self._encoding) == ";"
            for batch in delimited.text_batches(source, self._encoding, self._missing):
                finder.look(batch)
                rows += batch.num_rows
            return dict.fromkeys(delimited.header(source, self._encoding), pa.null()), rows, None
        if source.format == "jsonl":
            own: dict[str, pa.DataType] = {}
            for batch in json_batches(source, self._encoding, (), self._most_columns):
                rows += batch.num_rows
                for f in batch.schema:
                    own[f.name] = self._common(f.name, [own.get(f.name, pa.null()), f.type])
                    self._keep_text(f)
            return own, rows, None
        if source.format == "excel":
            table = self._sheets[source] = read_sheet(source)
            rows, schema = table.num_rows, table.schema
        else:
            rows, schema = arrow_shape(source)
        return {f.name: f.type for f in schema}, rows, schema.metadata

    def _warn_of_signs(self, finder: delimited.TypeFinder) -> None:
        """Say that numbers of the model have another decimal sign here: they would all be unreadable."""
        if self._fitted is None:
            return
        known = self._fitted.types
        odd = [n for n, form in finder.signs().columns.items() if known.get(n) == "numeric" and form.decimal == ","]
        if odd:
            names = ", ".join(map(repr, odd[:10]))
            text = f"{self.label}: numbers of {names} have a decimal comma, and the model's have a decimal point."
            logger.warning(Message(text, "Give {}.", (Option("decimal", ","),), "Write them with a decimal point."))

    def _common(self, name: str, kinds: list[pa.DataType]) -> pa.DataType:
        """One type for a column that has several in different files or blocks."""
        if name in self._mixed:
            return pa.large_string()
        distinct = [k for k in dict.fromkeys(kinds) if not pa.types.is_null(k)]
        if len(distinct) < 2:
            return distinct[0] if distinct else pa.null()
        parts = [pa.schema([(name, _unpacked(k))]) for k in distinct]
        try:
            return pa.unify_schemas(parts, promote_options="permissive").field(0).type
        except pa.ArrowException:
            self._mixed.add(name)
            return pa.large_string()

    def _keep_text(self, field: pa.Field) -> None:
        """A text column of the model that JSON shows as a number or a date is taken as it stands in the file."""
        text = field.name in self._text and not (is_text(field.type) or pa.types.is_null(field.type))
        if text or is_foreign(self._types.get(field.name), field.type):
            self._mixed.add(field.name)

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
            for batch in delimited.text_batches(source, self._encoding, self._missing):
                yield delimited.typed(batch, pa.schema([self.schema.field(n) for n in batch.schema.names]))
        elif source.format == "jsonl":
            yield from json_batches(source, self._encoding, self._mixed, self._most_columns)
        elif source.format == "excel":
            yield from self._sheets[source].to_batches()
        else:
            yield from arrow_batches(source, self._batch_rows)


def _unpacked(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if pa.types.is_string(kind) else kind


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _cast(batch: pa.RecordBatch, schema: pa.Schema, source: Source) -> pa.RecordBatch:
    columns = []
    for f in schema:
        place = batch.schema.get_field_index(f.name)
        if place < 0:  # a JSON line may leave a key out
            columns.append(pa.nulls(batch.num_rows, f.type))
            continue
        array = batch.column(place)
        try:
            columns.append(array if array.type == f.type else array.cast(f.type))
        except pa.ArrowException as error:
            raise DataError(f"{source.label}, column {f.name!r}: {error}. Give it one type in all files.") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
