"""Scores into a table of a database: scored at constant memory first, then written in one transaction.

The scored rows are stored in a temporary file, so no transaction stays open and no table stays locked while the model
runs, and reading has ended before writing begins. The new table is filled under a temporary name and renamed as the
last step of the transaction: a reader sees the old state or the new one, wherever the job stops.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from ptad.errors import DataError, Option, SettingError
from ptad.jobs.score import ScoreSummary, score_table
from ptad.tables.database import Database, quoted

_UNCHANGED = "The database is unchanged. Remove the cause and score again."
_IS_TABLE = {
    "sqlite": "SELECT type = 'table' FROM sqlite_master WHERE lower(name) = lower(?)",
    "duckdb": "SELECT table_type = 'BASE TABLE' FROM information_schema.tables WHERE lower(table_name) = lower(?) "
    "AND lower(table_schema) = lower(?)",
    "postgresql": "SELECT relkind IN ('r', 'p') FROM pg_catalog.pg_class WHERE oid = to_regclass($1)",
}
_NAME = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def score_into(
    model_folder: str | Path, source: Any, uri: str, table: str, *, replace: bool = False, **options: Any
) -> ScoreSummary:
    """Score a table or a query into a new table of the database ``uri``; see :mod:`ptad.tables.database`.

    ``table`` is NAME or SCHEMA.NAME; a name that holds a dot is put in double quotes. A table of that name is refused
    before any row is scored, unless ``replace`` is set. Everything else is as for :func:`ptad.jobs.score.score_table`.
    """
    target = Target.parse(Database.parse(uri), table)
    target.check(replace=replace)
    with tempfile.TemporaryDirectory(prefix="ptad-") as folder:
        scored = Path(folder) / "scored.arrow"
        summary = score_table(model_folder, source, scored, **options)
        with pa.OSFile(str(scored)) as file:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            target.write(reader.schema, batches, replace=replace)
    return dataclasses.replace(summary, out=f"the table {table} of {target.database.label}")


@dataclass(frozen=True)
class Target:
    """A table to be written; without a ``schema`` it is the default one of the database."""

    database: Database
    schema: str | None
    name: str

    @classmethod
    def parse(cls, database: Database, text: str) -> Target:
        """Read ``table`` or ``schema.table``."""
        names, position = [], 0
        while match := _NAME.match(text, position):
            names.append((match[1] or match[2]).replace('""', '"'))
            position = match.end() + 1
            if text[match.end() : position] != ".":
                break
        if position != len(text) + 1 or len(names) > 2 or "\0" in text:
            raise SettingError(
                f"{text!r} names no table of a database. Give NAME or SCHEMA.NAME; a name with a dot or a quote is put "
                "in double quotes, such as '\"my.table\"'."
            )
        if len(names) == 2 and database.kind == "sqlite":
            raise SettingError(f"{text!r} names a schema, and SQLite has none. Give the name of the table alone.")
        if database.kind == "duckdb" and database.path is None:
            raise SettingError(
                "A database in memory keeps no table.", "Name a file: {db}.", options=(Option("db", "duckdb:///FILE"),)
            )
        return cls(database, names[0] if len(names) == 2 else None, names[-1])

    def check(self, *, replace: bool) -> None:
        """Raise before any work if the table cannot be written."""
        with (
            Session(self.database) as session,
            self.database.errors("the tables cannot be listed", "Check your rights."),
        ):
            is_table = self._is_table(session)
        if is_table is False:
            raise SettingError(f"{self.name!r} is a view or the like, not a table. Name another table.")
        if is_table and not replace:
            raise SettingError(
                f"{self.database.label} has a table {self.name!r} already.",
                "Name another one, or let it be replaced with {replace}.",
                options=(Option("replace", True),),
            )

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, replace: bool) -> None:
        """Write all rows in one transaction."""
        stored = pa.schema([(f.name, _storable(f.type, self.database.kind)) for f in schema])
        rows = pa.RecordBatchReader.from_batches(stored, (_cast(batch, stored) for batch in batches))
        staging = f"ptad_{secrets.token_hex(6)}"
        problem = f"the table {self.name!r} cannot be written"
        with Session(self.database) as session, self.database.errors(problem, _UNCHANGED):
            session.fill(self.schema, staging, rows)
            if replace:
                session.run(f"DROP TABLE IF EXISTS {quoted_path(self.schema, self.name)}")
            session.run(f"ALTER TABLE {quoted_path(self.schema, staging)} RENAME TO {quoted_path(None, self.name)}")
            session.commit()

    def _is_table(self, session: Session) -> bool | None:
        """Return True for a table, False for anything else of that name, None if the name is free."""
        kind = self.database.kind
        names = {"sqlite": (self.name,), "duckdb": (self.name, self.schema or "main")}
        rows = session.run(_IS_TABLE[kind], names.get(kind, (quoted_path(self.schema, self.name),)))
        return bool(rows[0][0]) if rows else None


class Session:
    """A connection inside a transaction; leaving the ``with`` block without :meth:`commit` rolls it back."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._connection = database.connect(read_only=False)
        duckdb = database.kind == "duckdb"
        self._cursor = self._connection if duckdb else self._connection.cursor()
        if duckdb:
            self.run("BEGIN")
        elif database.kind == "sqlite":
            self.run("PRAGMA busy_timeout = 30000")  # another program may be writing

    def run(self, sql: str, parameters: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        self._cursor.execute(sql, parameters or None)
        return list(self._cursor.fetchall()) if sql.startswith("SELECT") else []

    def fill(self, schema: str | None, table: str, rows: pa.RecordBatchReader) -> None:
        """Create a table with these rows."""
        if self.database.kind == "duckdb":
            self._connection.register("ptad_incoming", rows)
            self.run(f"CREATE TABLE {quoted_path(schema, table)} AS SELECT * FROM ptad_incoming")
            self._connection.unregister("ptad_incoming")
        else:
            extra = {} if schema is None else {"db_schema_name": schema}
            self._cursor.adbc_ingest(table, rows, mode="create", **extra)

    def commit(self) -> None:
        """Commit the transaction."""
        self._connection.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # without a commit, closing rolls back; a connection that was lost cannot be closed
        for close in (self._cursor.close, self._connection.close):
            with contextlib.suppress(Exception):
                close()


def quoted_path(schema: str | None, table: str) -> str:
    """Return the quoted name of a table."""
    return quoted(table) if schema is None else f"{quoted(schema)}.{quoted(table)}"


def _storable(kind: pa.DataType, database: str) -> pa.DataType:
    """Return the type in which the driver stores a column; SQLite has numbers and text only."""
    if pa.types.is_dictionary(kind):
        return _storable(kind.value_type, database)
    if pa.types.is_float16(kind):
        return pa.float32()
    if database == "postgresql" and pa.types.is_date64(kind):
        return pa.date32()
    if database == "sqlite":
        if pa.types.is_decimal(kind):
            return pa.float64()
        if pa.types.is_duration(kind):
            return pa.int64()
        if pa.types.is_temporal(kind):
            return pa.string()
    return kind


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for array, f in zip(batch.columns, schema, strict=True):
        try:
            columns.append(array.cast(f.type))
        except pa.ArrowException as error:
            raise DataError(f"Column {f.name!r} cannot be stored as {f.type}: {error}. Exclude it.") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
