"""Reading of queries in each database as Arrow batches, with constant memory.

No database can be changed: SQLite and DuckDB files are opened read-only, PostgreSQL reads in a read-only transaction.
Columns of a type that a detector cannot use are an error before any row is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ptad.errors import DataError, SettingError
from ptad.tables.database import Database, driver, quoted
from ptad.tables.names import repeated
from ptad.tables.source import ReadOptions, Source, TableFile
from ptad.tables.values import EXACT

_WRONG = "Correct the query."
_LOST = "Nothing was written: correct the query, or run it again if the connection was lost."
# types of PostgreSQL that are read as text
_PG_TEXT = ("uuid", "inet", "cidr", "macaddr", "macaddr8", "citext")


Opened = tuple[pa.Schema, Iterator[pa.RecordBatch], int | None]


def open_query(source: Source, options: ReadOptions) -> TableFile:
    """Start a query; raise if its types cannot be used, or if it has no rows."""
    assert source.query is not None
    database = source.query.database
    opener = {"sqlite": _open_sqlite, "duckdb": _open_duckdb, "postgresql": _open_postgresql}[database.kind]
    with ExitStack() as stack:
        connection = _closed_by(stack, database.connect(read_only=True))
        with database.errors("the query cannot be run", _WRONG):
            schema, batches, n_rows = opener(database, connection, source.query.statement, options.batch_rows, stack)
        first = next(batches, None)
        if first is None:
            raise DataError(f"{source.label} returns no rows. Check its conditions.")
        options.types.add(schema)
        close = stack.pop_all().close  # may be called again

    def rows() -> Iterator[pa.RecordBatch]:
        try:
            yield first
            yield from batches
        finally:
            close()

    return TableFile(schema.names, n_rows, rows, close=close)


def _closed_by(stack: ExitStack, resource: Any) -> Any:
    """Let the stack close a connection or cursor; a lost one fails to close, which is ignored."""

    def close() -> None:
        with suppress(Exception):
            resource.close()

    stack.callback(close)
    return resource


def _open_sqlite(database: Database, connection: Any, sql: str, batch_rows: int, stack: ExitStack) -> Opened:
    """Find the types of every value first, since a column of SQLite may hold values of several types.

    The driver infers types from the first rows, so a sample row with the types of all is added, and cut off again.
    """
    cursor = _closed_by(stack, connection.cursor())
    cursor.execute(sql)
    names = cursor.fetch_record_batch().schema.names
    _check_names(database, names)
    flags = [
        " + ".join(f"{2**i} * max(typeof({quoted(n)}) = '{t}')" for i, t in enumerate(_SQLITE_TYPES)) for n in names
    ]
    cursor.execute(f"SELECT count(*), {', '.join(flags)} FROM (\n{sql}\n)")
    count, *type_bits = cursor.fetchone()
    casts = [_sqlite_cast(name, int(bits or 0)) for name, bits in zip(names, type_bits, strict=True)]
    schema = pa.schema([(name, kind) for name, (kind, _, _) in zip(names, casts, strict=True)])
    samples = ", ".join(f"{sample} AS {quoted(n)}" for n, (_, sample, _) in zip(names, casts, strict=True))
    values = ", ".join(expression for _, _, expression in casts)
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(batch_rows)})
    cursor.execute(f"SELECT {samples} UNION ALL SELECT {values} FROM (\n{sql}\n)")
    reader = cursor.fetch_record_batch()

    def rows() -> Iterator[pa.RecordBatch]:
        skipped = 1
        for batch in _read(database, reader):
            if batch.num_rows > skipped:
                yield batch.slice(skipped)
            skipped = 0

    return schema, rows(), int(count)


_SQLITE_TYPES = ("integer", "real", "text", "blob")


def _sqlite_cast(name: str, bits: int) -> tuple[pa.DataType, str, str]:
    """The Arrow type of a column with these types of values, a sample value, and the expression to select."""
    column = quoted(name)
    if bits & 8:
        raise _unusable_type(name, "BLOB", f"hex({column})")
    if bits & 4:
        text = f"CAST({column} AS TEXT)"  # of a float only 15 digits
        exact = f"CASE WHEN CAST({text} AS REAL) = {column} THEN {text} ELSE printf('%!.17g', {column}) END"
        return pa.string(), "''", f"CASE typeof({column}) WHEN 'real' THEN {exact} ELSE {text} END"
    if bits & 2:
        return pa.float64(), "0.0", f"CAST({column} AS REAL)"
    return (pa.int64() if bits else pa.null()), "0", column


def _open_duckdb(database: Database, connection: Any, sql: str, batch_rows: int, stack: ExitStack) -> Opened:
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != driver("duckdb").StatementType.SELECT:
        raise SettingError("The query must be one SELECT. Give one statement that reads rows.")
    relation = connection.sql(sql)
    _check_names(database, relation.columns)
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if kind.id in _DUCK_REFUSED or str(kind) == "JSON":
            raise _unusable_type(name, str(kind), f"{quoted(name)}::VARCHAR")
    reader = relation.to_arrow_reader(batch_rows)
    return _without_metadata(reader.schema), _read(database, reader), None


_DUCK_REFUSED = ("blob", "bit", "interval", "list", "array", "struct", "map", "union", "time with time zone")


def _open_postgresql(database: Database, connection: Any, sql: str, batch_rows: int, stack: ExitStack) -> Opened:
    cursor = _closed_by(stack, connection.cursor())
    declared = cursor.adbc_execute_schema(sql)
    _check_names(database, declared.names)
    enums = _pg_enums(cursor, declared)
    as_text = []
    for f in declared:
        name = _pg_type(f)
        if name in _PG_TEXT or name in enums:
            as_text.append(f.name)
        elif (name != "numeric" and not _is_usable(f.type)) or name == "money":
            raise _unusable_type(f.name, name, f"{quoted(f.name)}::text")
    if as_text:
        columns = ", ".join(f"{quoted(n)}::text AS {quoted(n)}" if n in as_text else quoted(n) for n in declared.names)
        sql = f"SELECT {columns} FROM (\n{sql}\n) AS rows_of_query"
    cursor.execute(f"{sql}\n")  # the driver adds a bracket, which must not become part of a comment at the end
    reader = cursor.fetch_record_batch()
    schema = _without_metadata(
        pa.schema([(f.name, pa.float64() if _pg_type(f) == "numeric" else f.type) for f in reader.schema])
    )

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in _read(database, reader):
            columns = [
                _decimals_to_floats(c, f.name) if _pg_type(f) == "numeric" else c
                for c, f in zip(batch.columns, batch.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return schema, rows(), None


def _pg_type(f: pa.Field) -> str:
    return ((f.metadata or {}).get(b"POSTGRESQL:type") or str(f.type).encode()).decode()


def _pg_enums(cursor: Any, schema: pa.Schema) -> set[str]:
    """The types unknown to the driver that are enumerations or case-insensitive text."""
    unnamed = {name: int(name[12:-1]) for name in map(_pg_type, schema) if name.startswith("unnamed<oid:")}
    if not unnamed:
        return set()
    numbers = ", ".join(map(str, unnamed.values()))
    cursor.execute(
        f"SELECT oid::int8 FROM pg_catalog.pg_type WHERE oid IN ({numbers}) AND (typtype = 'e' OR typname = 'citext')"
    )
    known = {row[0] for row in cursor.fetchall()}
    return {name for name, oid in unnamed.items() if oid in known}


def _decimals_to_floats(column: pa.Array, name: str) -> pa.Array:
    """Decimal numbers as floats; whole numbers that would lose digits, such as long keys, are an error."""
    text = column.storage if isinstance(column, pa.ExtensionArray) else column
    values = text.cast(pa.float64())
    whole = pc.invert(pc.match_substring_regex(text, r"[.eEnN]"))
    changed = pc.and_(pc.and_(whole, pc.is_finite(values)), pc.greater(pc.abs(values), float(EXACT)))
    if pc.any(changed).as_py():
        example = text.filter(changed)[0].as_py()
        raise DataError(
            f"Column {name!r} (numeric) holds {example}, more digits than a floating number keeps. Write "
            f"{quoted(name)}::text in the query to keep it as text, or {quoted(name)}::float8 to round it."
        )
    return values


def _read(database: Database, reader: Any) -> Iterator[pa.RecordBatch]:
    with database.errors("the rows could not be read to the end", _LOST):
        yield from reader


def _check_names(database: Database, names: list[str]) -> None:
    if duplicates := sorted(repeated(names)):
        raise DataError(
            f"The query on {database.label} has two columns {', '.join(map(repr, duplicates))}. Give them different "
            "names with AS."
        )


def _unusable_type(name: str, kind: str, cast: str) -> DataError:
    return DataError(
        f"Column {name!r} of the query has the type {kind}, which cannot be encoded. Exclude it from the "
        f"query, or turn it into a number, text or a date there, such as {cast}."
    )


def _is_usable(kind: pa.DataType) -> bool:
    return not (
        isinstance(kind, pa.BaseExtensionType)
        or "binary" in str(kind)  # of any width and layout
        or pa.types.is_nested(kind)
        or pa.types.is_interval(kind)
    )


def _without_metadata(schema: pa.Schema) -> pa.Schema:
    """The schema without the metadata of the driver; other types that cannot be used are an error."""
    for f in schema:
        if not _is_usable(f.type):
            raise _unusable_type(f.name, str(f.type), f"a cast of {quoted(f.name)}")
    return pa.schema([(f.name, f.type) for f in schema])
