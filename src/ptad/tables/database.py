"""Databases and queries: addresses, connections and errors.

Three kinds of databases are distinguished by the address:

=========================================== =============================================================
``sqlite:///shop.db``, ``shop.sqlite``      SQLite (``sqlite:////data/shop.db`` is an absolute path)
``duckdb:///shop.duckdb``, ``shop.duckdb``  DuckDB; ``duckdb://`` alone is one in memory, for queries on files
``postgresql://user:password@host/shop``    PostgreSQL, with everything that libpq takes in a URI
=========================================== =============================================================

A password never reaches a message: labels do not hold it, and it is replaced in the errors of drivers.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

import pyarrow as pa

from ptad.errors import DataError, SettingError, needs_extra

_SUFFIXES = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb", ".ddb": "duckdb"}
_SCHEMES = {"sqlite": "sqlite", "duckdb": "duckdb", "postgresql": "postgresql", "postgres": "postgresql"}
# the message about a database that cannot be opened: problem and remedy
_CANNOT_OPEN = {
    "sqlite": ("cannot be opened", "Check that it is an SQLite database."),
    "duckdb": ("cannot be opened", "Check that it is a DuckDB file which no other program writes to."),
    "postgresql": ("no connection", "Check the address, the user and the password, and that the server is running."),
}
_SECRETS = ("password", "sslpassword", "passfile")
# A lost server is noticed in minutes; the default of the system is two hours.
_TIMEOUTS = {"connect_timeout": "15", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


@dataclass(frozen=True)
class Database:
    """A database."""

    kind: str  # one of those of _SCHEMES
    path: Path | None  # the file, if it is one
    address: str = field(repr=False)  # for the driver; it may hold a password
    label: str  # its name in messages
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, uri: str) -> Database:
        """Parse an address; the error about a wrong one does not repeat it, since it may hold a password."""
        scheme, colon, _ = uri.partition("://")
        if not colon:
            kind = _SUFFIXES.get(Path(uri).suffix.lower())
            if kind is None or "@" in uri:
                raise _unknown_address()
            return cls(kind, Path(uri), uri, uri)
        kind = _SCHEMES.get(scheme.lower().partition("+")[0])
        if kind is None:
            raise _unknown_address()
        if kind == "postgresql":
            return _parse_postgresql(uri)
        name = unquote(uri[len(scheme) + 3 :])
        if name and not name.startswith("/"):
            raise SettingError(
                f"In the address of a database '{kind}://' is followed by a third slash and the file, such as "
                f"{kind}:///shop.db. Correct it."
            )
        path = Path(name[1:]) if name not in ("", "/") else None
        if path is None and kind == "sqlite":
            raise SettingError(
                "In the address of a database 'sqlite:///' is followed by the file, such as sqlite:///shop.db. Name it."
            )
        return cls(kind, path, "" if path is None else str(path), f"{scheme}:///{path}" if path else "DuckDB")

    def existing(self) -> Path:
        """The file, which must exist: a mistyped name must not create a new database."""
        assert self.path is not None
        if not self.path.is_file():
            raise DataError(f"There is no database file {self.path}. Check the address; a new database is not made.")
        return self.path

    def connect(self, *, read_only: bool) -> Any:
        """Open a connection of the driver, perhaps one that cannot change anything."""
        package = driver(self.kind)
        with self.errors(*_CANNOT_OPEN[self.kind]):
            if self.kind == "duckdb":
                file = None if self.path is None else str(self.existing())
                # for a file of another format or a web address DuckDB would download code, and run it
                offline = {"autoinstall_known_extensions": "false"}
                return package.connect(file or ":memory:", read_only=read_only and file is not None, config=offline)
            if self.kind == "sqlite":
                path = quote(str(self.existing().resolve()))
                return package.connect(f"file:{path}?mode={'ro' if read_only else 'rw'}")
            connection = package.connect(self.address)
            if read_only:
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION READ ONLY")
            return connection

    @contextmanager
    def errors(self, problem: str, remedy: str) -> Iterator[None]:
        """Turn errors of drivers into one line with the database, the problem, its reason and the remedy."""
        try:
            yield
        except Exception as error:
            if not _is_driver_error(error):
                raise
            # the driver's own error is not chained: its text may hold the password
            raise DataError(f"{self.label}: {problem}: {self.reason(error)}. {remedy}") from None

    def reason(self, error: BaseException) -> str:
        """The text of a driver's error as one line, without its codes, the query or a password."""
        text = str(error).partition("\n\nQuery was")[0].partition("\nquery: ")[0].partition("\nLINE ")[0]
        text = re.sub(
            r"^[A-Z_]+: |^\[\w+\] |Failed to \w+ query( '.*?')?: | ?\.? SQLSTATE: \w+", "", " ".join(text.split())
        )
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text.rstrip(".? ") or type(error).__name__


@dataclass(frozen=True)
class Query:
    """The rows of a query on a database, as a source of a table: ``scan_table(Query(uri, sql))``."""

    uri: str = field(repr=False)
    sql: str

    @property
    def database(self) -> Database:
        return Database.parse(self.uri)

    @property
    def statement(self) -> str:
        """The query without closing semicolons."""
        text = self.sql.strip().rstrip("; \t\n")
        if not text:
            raise SettingError("The query is empty. Give a SELECT.")
        return text


def quoted(name: str) -> str:
    """An identifier in double quotes, as all three databases read it."""
    if "\0" in name or not name:
        raise SettingError(f"{name!r} cannot name a table or column. Use another name.")
    return '"' + name.replace('"', '""') + '"'


def driver(kind: str) -> Any:
    """Import the driver of this kind of database."""
    package = "duckdb" if kind == "duckdb" else f"adbc-driver-{kind}"
    with needs_extra("sql", f"A {kind} database", package):
        return importlib.import_module("duckdb" if kind == "duckdb" else f"adbc_driver_{kind}.dbapi")


def _unknown_address() -> SettingError:
    return SettingError(
        "The address of a database must be sqlite:///FILE, duckdb:///FILE or "
        f"postgresql://USER:PASSWORD@HOST:PORT/NAME, or a file that ends in {', '.join(_SUFFIXES)}. Got something else."
    )


def _parse_postgresql(uri: str) -> Database:
    try:
        parts = urlsplit(uri)
        host, port, password = parts.hostname or "", parts.port, parts.password or ""
    except ValueError:
        parts = None
    # after an unescaped slash or @ in a password its rest would be taken for the host, the port or the name
    if parts is None or "@" in f"{host}{unquote(parts.path)}" or parts.fragment or password.count("@"):
        raise SettingError(
            "The address of the PostgreSQL server is malformed. It is postgresql://USER:PASSWORD@HOST:PORT/NAME, "
            "in which / : @ # ? % of a password are written as %2F %3A %40 %23 %3F %25."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    secrets = [password, unquote(password), *(options.get(name, "") for name in _SECRETS)]
    user = f"{parts.username}@" if parts.username else ""
    label = f"postgresql://{user}{host}{f':{port}' if port else ''}{parts.path}"
    label += f" ({options['host']})" if options.get("host") else ""
    query = urlencode({**_TIMEOUTS, **options}, quote_via=quote)
    address = SplitResult("postgresql", parts.netloc, parts.path, query, "").geturl()
    if not address.startswith("postgresql://"):  # without host and path the two slashes would be lost
        address = f"postgresql://?{query}"
    return Database("postgresql", None, address, label, tuple(sorted({s for s in secrets if s}, key=len, reverse=True)))


def _is_driver_error(error: Exception) -> bool:
    # by the name of the package, since drivers are optional
    package = type(error).__module__.partition(".")[0]
    return package in ("adbc_driver_manager", "duckdb", "_duckdb") or isinstance(error, pa.ArrowException | OSError)
