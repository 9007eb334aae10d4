"""One transaction on a database: statements, an Arrow stream into a new table, commit; anything else undoes it."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from ptad.tables.database import Database, driver, quoted

_REACH = "Check the address, the user and the password, and that the server is running."


class Session:
    """A connection inside a transaction; leaving the ``with`` block without :meth:`commit` rolls it back."""

    def __init__(self, database: Database) -> None:
        self.database = database
        kind = database.kind
        package = driver(kind)
        with database.errors("no connection", _REACH):
            if kind == "duckdb":
                self._connection = package.connect(str(database.existing()))
                self._cursor = self._connection
                self._cursor.execute("BEGIN")
            else:
                address = database.address if kind == "postgresql" else str(database.existing().resolve())
                self._connection = package.connect(address)
                self._cursor = self._connection.cursor()
        if kind == "sqlite":
            self.run("PRAGMA busy_timeout = 30000")  # another program may be writing

    def run(self, sql: str, parameters: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        self._cursor.execute(sql, parameters or None)
        return list(self._cursor.fetchall()) if sql.startswith("SELECT") else []

    def fill(self, schema: str | None, table: str, rows: pa.RecordBatchReader) -> None:
        """Make a table and put all rows in it."""
        if self.database.kind == "duckdb":
            self._connection.register("ptad_incoming", rows)
            self.run(f"CREATE TABLE {path_of(schema, table)} AS SELECT * FROM ptad_incoming")
            self._connection.unregister("ptad_incoming")
        else:
            extra = {} if schema is None else {"db_schema_name": schema}
            self._cursor.adbc_ingest(table, rows, mode="create", **extra)

    def commit(self) -> None:
        """Make everything visible at once."""
        self._connection.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a transaction that was not committed ends with its connection; one that is lost cannot be closed either
        for close in (self._cursor.close, self._connection.close):
            with contextlib.suppress(Exception):
                close()


def path_of(schema: str | None, table: str) -> str:
    """The quoted name of a table."""
    return quoted(table) if schema is None else f"{quoted(schema)}.{quoted(table)}"
