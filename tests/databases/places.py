"""Ways past ptad into each kind of database, to look into it and change it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgres_server import PostgresServer


@dataclass(frozen=True)
class Place:
    """A database: its address, and a way past ptad to look into it and change it."""

    uri: str
    run: Callable[..., list[tuple[Any, ...]]]

    def tables(self) -> set[str]:
        """Names of all tables."""
        if self.uri.startswith("sqlite"):
            return {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        own = "('pg_catalog', 'information_schema')"
        found = self.run(f"SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN {own}")
        return {row[0] for row in found}


def sqlite_place(path: Path) -> Place:
    def run(sql: str, *many: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(path)
        try:
            with connection:
                return connection.executemany(sql, *many).fetchall() if many else connection.execute(sql).fetchall()
        finally:
            connection.close()

    return Place(f"sqlite:///{path}", run)


def duckdb_place(path: Path) -> Place:
    import duckdb

    def run(sql: str, *many: Any) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(path)) as connection:
            done = connection.executemany(sql, *many) if many else connection.execute(sql)
            return list(done.fetchall())

    return Place(f"duckdb:///{path}", run)


def postgres_place(server: PostgresServer) -> Place:
    from adbc_driver_postgresql import dbapi

    def run(sql: str, *many: Any) -> list[tuple[Any, ...]]:
        with dbapi.connect(server.uri) as connection, connection.cursor() as cursor:
            if many:
                cursor.executemany(sql, *many)
            else:
                cursor.execute(sql)
            found = list(cursor.fetchall()) if sql.startswith("SELECT") else []
            connection.commit()
            return found

    return Place(server.uri, run)


def emptied(server: PostgresServer) -> Place:
    """The server's database without any table."""
    place = postgres_place(server)
    place.run("DROP SCHEMA public CASCADE")
    place.run("CREATE SCHEMA public")
    return place
