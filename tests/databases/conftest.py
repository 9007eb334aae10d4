"""Three real databases with the same table, and a model that was fitted on it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from places import Place, duckdb_place, emptied, sqlite_place
from postgres_server import PostgresServer, why_not

from ptad import PTAD

pytest.importorskip("adbc_driver_sqlite", reason="the extra 'sql' is not installed")
pytest.importorskip("duckdb", reason="the extra 'sql' is not installed")

N_ROWS = 300


@pytest.fixture(scope="session")
def rows() -> pa.Table:
    """Rows with a key; the second number follows from the first, and the last is one of a kind."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=N_ROWS)
    b = 2 * a + rng.normal(size=N_ROWS) * 0.1
    b[-1] = 50.0
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, N_ROWS)]
    return pa.table({"key": np.arange(N_ROWS) * 7, "a": a, "b": pa.array(b, mask=a > 2), "colour": colour})


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    PTAD(verbose=0, device="cpu", drop=["key"]).fit(rows.slice(0, N_ROWS - 1)).save(folder)
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server; its absence is an error in CI and a skip elsewhere."""
    if (reason := why_not()) is not None:
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    # pytest's own folders cannot be entered by the user that the server runs as
    with tempfile.TemporaryDirectory(prefix="ptad-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder))
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path, rows: pa.Table) -> Place:
    """A database with the table ``orders``."""
    if request.param == "postgresql":
        found = emptied(request.getfixturevalue("postgres"))
    else:
        found = {"sqlite": sqlite_place, "duckdb": duckdb_place}[request.param](tmp_path / "shop.db")
    number = "REAL" if request.param == "sqlite" else "DOUBLE PRECISION"
    found.run(f"CREATE TABLE orders (key BIGINT, a {number}, b {number}, colour TEXT)")
    mark = "$1, $2, $3, $4" if request.param == "postgresql" else "?, ?, ?, ?"
    values = [tuple(row.values()) for row in rows.to_pylist()]
    found.run(f"INSERT INTO orders VALUES ({mark})", values)
    return found
