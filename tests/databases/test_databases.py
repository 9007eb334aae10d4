"""Reading from and writing to real databases: the same rows, the same scores, all or nothing."""

from __future__ import annotations

import datetime
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from places import Place, emptied, sqlite_place
from postgres_server import PASSWORD, PostgresServer
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app
from ptad.errors import DataError, MissingExtraError, SettingError, UserError
from ptad.jobs import database as engine
from ptad.jobs.database import score_into
from ptad.jobs.score import score_table
from ptad.tables import Query, read_table, scan_table, write_table
from ptad.tables import database as tables_database

QUERY = "SELECT * FROM orders ORDER BY key"


def test_a_query_is_a_table_like_any_other(place: Place, rows: pa.Table, model: Path) -> None:
    found = read_table(Query(place.uri, f"{QUERY} -- all of them"))
    assert found.to_pylist() == rows.to_pylist()
    sizes = [batch.num_rows for batch in scan_table(Query(place.uri, QUERY + " ;"), batch_rows=128)]
    assert sizes == [128, 128, 44]
    detector = PTAD.load(model, device="cpu")
    assert np.array_equal(detector.anomaly_score(found), detector.anomaly_score(rows))


def test_scores_are_written_back(place: Place, rows: pa.Table, model: Path) -> None:
    summary = score_into(model, Query(place.uri, QUERY), place.uri, "scored", batch_rows=100, explain=1)
    assert (summary.rows, place.tables()) == (300, {"orders", "scored"})
    expected = PTAD.load(model, device="cpu").anomaly_score(rows)
    found = place.run("SELECT key, a, colour, score, anomaly, why_1 FROM scored ORDER BY key")
    assert [row[0] for row in found] == rows["key"].to_pylist()
    assert [row[1] for row in found] == rows["a"].to_pylist()
    assert np.array_equal([row[3] for row in found], expected)
    assert bool(found[-1][4]) is True and found[-1][5] == "b"  # the planted one
    assert sum(bool(row[4]) for row in found) == summary.anomalies


def test_an_existing_table_is_refused_before_any_work(
    place: Place, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "score_table", lambda *a, **k: pytest.fail("rows were scored"))
    with pytest.raises(SettingError, match=r"'orders'.*replace=True"):
        score_into(model, Query(place.uri, QUERY), place.uri, "orders")
    place.run("CREATE VIEW seen AS SELECT key FROM orders")
    with pytest.raises(SettingError, match="'seen' is a view"):
        score_into(model, Query(place.uri, QUERY), place.uri, "seen", replace=True)


def test_replace_swaps_the_table_even_the_one_that_is_read(place: Place, rows: pa.Table, model: Path) -> None:
    score_into(model, Query(place.uri, QUERY), place.uri, "orders", replace=True, append=False)
    assert place.tables() == {"orders"}
    assert place.run("SELECT count(*), count(score) FROM orders") == [(300, 300)]
    with pytest.raises(DataError, match="a"):  # its columns are gone
        read_table(Query(place.uri, "SELECT a FROM orders"))


def test_names_are_quoted(place: Place, model: Path, tmp_path: Path, rows: pa.Table) -> None:
    odd = 'x"; DROP TABLE orders; --'
    write_table(
        rows.rename_columns(["key", "a", "b", "colour"]).append_column(odd, rows["key"]), tmp_path / "t.parquet"
    )
    score_into(model, tmp_path / "t.parquet", place.uri, '"my.""table"')
    assert place.tables() == {"orders", 'my."table'}
    found = read_table(Query(place.uri, 'SELECT * FROM "my.""table" ORDER BY key'))
    assert found[odd].to_pylist() == rows["key"].to_pylist()


@pytest.mark.parametrize("name", ["", ".", "a.b.c", 'a"b', '"', "a.", '""'])
def test_names_that_are_none(name: str, model: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="names no table"):
        score_into(model, "t.csv", f"sqlite:///{tmp_path}/x.db", name)


def test_a_failure_while_writing_leaves_the_database_as_it_was(
    place: Place, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place.run("SELECT * FROM orders ORDER BY key")
    plain = engine._cast

    def failing(batch: Any, schema: Any) -> Any:
        if batch.column(0)[0].as_py() >= 1400:  # the third batch
            raise pa.ArrowInvalid("the disk is full")
        return plain(batch, schema)

    monkeypatch.setattr(engine, "_cast", failing)
    for replace, table in ((False, "scored"), (True, "orders")):
        with pytest.raises(DataError, match=r"the disk is full.*unchanged"):
            score_into(model, Query(place.uri, QUERY), place.uri, table, replace=replace, batch_rows=100)
    assert place.tables() == {"orders"}
    assert place.run("SELECT * FROM orders ORDER BY key") == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT 1 AS x, 2 AS x", "two columns 'x'"),
        ("SELECT * FROM orders WHERE 1 = 0", "no rows"),
        ("DELETE FROM orders", "read-?only|SELECT"),
        ("DROP TABLE orders", "read-?only|SELECT"),
        ("SELECT 1 AS a; DELETE FROM orders", "syntax|SELECT|multiple"),
        (" ;", "empty"),
    ],
)
def test_wrong_queries(place: Place, sql: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        scan_table(Query(place.uri, sql))
    assert str(caught.value).endswith(".") and PASSWORD not in str(caught.value)
    assert place.run("SELECT count(*) FROM orders") == [(300,)]


def test_duckdb_downloads_nothing() -> None:
    """It would install an extension, which is code, for a file of another format or an address in a query."""
    query = Query("duckdb://", "SELECT current_setting('autoinstall_known_extensions') AS installs")
    assert read_table(query).to_pylist() == [{"installs": False}]


BAD_TYPES = {
    "sqlite": ["x'00'"],
    "duckdb": ["'a'::BLOB", "[1]", "INTERVAL 1 DAY", "{'a': 1}", "MAP {'a': 1}", "'{}'::JSON", "'1'::BIT"],
    "postgresql": [r"'\x00'::bytea", "array[1]", "interval '1 day'", "'{}'::jsonb", "1::money", "int4range(1, 2)"],
}


def test_types_without_a_meaning(place: Place) -> None:
    for value in BAD_TYPES[place.uri.partition(":")[0]]:
        with pytest.raises(DataError, match=r"'odd'.*cannot be encoded.*Exclude it"):
            scan_table(Query(place.uri, f"SELECT key, {value} AS odd FROM orders"))


def test_types_with_a_meaning_in_postgresql(postgres: PostgresServer) -> None:
    values = {
        "n": ("12.5::numeric", 12.5),
        "id": ("'12345678-1234-1234-1234-123456789012'::uuid", "12345678-1234-1234-1234-123456789012"),
        "day": ("date '2024-02-29'", datetime.date(2024, 2, 29)),
        "yes": ("true", True),
        "ip": ("'10.0.0.1'::inet", "10.0.0.1/32"),
        "small": ("3::smallint", 3),
        "nothing": ("null::numeric", None),
    }
    sql = "SELECT " + ", ".join(f"{text} AS {name}" for name, (text, _) in values.items())
    assert read_table(Query(postgres.uri, sql)).to_pylist() == [{n: value for n, (_, value) in values.items()}]
    with pytest.raises(DataError, match=r"'big' \(numeric\) holds 12345678901234567890.*::text"):
        read_table(Query(postgres.uri, "SELECT 12345678901234567890::numeric AS big"))


def test_enumerations_of_postgresql_are_text(postgres: PostgresServer) -> None:
    place = emptied(postgres)
    place.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    found = read_table(Query(place.uri, "SELECT 'glad'::mood AS m, 1 AS a UNION ALL SELECT 'sad', 2 ORDER BY 2"))
    assert found.to_pylist() == [{"m": "glad", "a": 1}, {"m": "sad", "a": 2}]


def test_values_of_several_types_in_one_column_of_sqlite(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path / "x.db")
    place.run("CREATE TABLE t (i, r, mixed, late, nil)")
    n = 5000  # the driver looks at the first 1024 rows only
    values = [
        (i, i if i < n - 1 else 0.5, i if i < n - 1 else "z", None if i < n - 1 else "late", None) for i in range(n)
    ]
    place.run("INSERT INTO t VALUES (?, ?, ?, ?, ?)", values)
    found = read_table(Query(place.uri, "SELECT * FROM t ORDER BY i DESC"))
    assert [str(kind) for kind in found.schema.types] == ["int64", "double", "string", "string", "null"]
    assert found.slice(0, 2).to_pylist() == [
        {"i": n - 1, "r": 0.5, "mixed": "z", "late": "late", "nil": None},
        {"i": n - 2, "r": n - 2.0, "mixed": str(n - 2), "late": None, "nil": None},
    ]


def test_a_text_among_the_numbers_of_sqlite_counts_as_missing_and_changes_no_other_row(
    tmp_path: Path, rows: pa.Table, model: Path
) -> None:
    place = sqlite_place(tmp_path / "x.db")
    place.run("CREATE TABLE t (key, a, b, colour)")
    values = [tuple(row.values()) for row in rows.to_pylist()]
    place.run("INSERT INTO t VALUES (?, ?, ?, ?)", values)
    query = Query(place.uri, "SELECT * FROM t ORDER BY key")
    score_table(model, query, tmp_path / "before.parquet", append=False)
    place.run("UPDATE t SET a = 'abc' WHERE key = (SELECT key FROM t ORDER BY key LIMIT 1 OFFSET 7)")
    summary = score_table(
        model, query, tmp_path / "after.parquet", append=False, batch_rows=5, bad_cells=tmp_path / "list.csv"
    )
    assert summary.cells.bad_columns == {"a": 1}
    assert (tmp_path / "list.csv").read_text().splitlines()[1] == "8,a,abc,not a number: 'abc'"
    before, after = (read_table(tmp_path / f"{name}.parquet")["score"].to_numpy() for name in ("before", "after"))
    assert np.flatnonzero(before != after).tolist() == [7]
    with pytest.raises(DataError, match="Column 'a', row 8: 'abc' is not a number"):
        score_table(model, query, tmp_path / "strict.parquet", strict=True)


def test_a_lost_server_is_a_clear_error_and_leaves_nothing(
    postgres: PostgresServer, model: Path, rows: pa.Table
) -> None:
    place = emptied(postgres)
    place.run("CREATE TABLE many AS SELECT i AS key, i * 0.5::float8 AS a FROM generate_series(1, 200000) AS i")
    scan = scan_table(Query(place.uri, "SELECT * FROM many, generate_series(1, 50)"), batch_rows=1000)
    next(scan)
    postgres.kill()
    try:
        with pytest.raises(DataError, match="could not be read to the end"):
            for _ in scan:
                pass
        with pytest.raises(DataError, match="no connection"):
            score_into(model, Query(place.uri, "SELECT * FROM many"), place.uri, "scored")
    finally:
        postgres.start()
    assert place.tables() == {"many"}


def test_a_killed_server_leaves_no_half_written_table(
    postgres: PostgresServer, model: Path, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = emptied(postgres)
    write_table(rows, tmp_path / "t.parquet")
    plain, killed = engine._cast, threading.Event()

    def killing(batch: Any, schema: Any) -> Any:
        if batch.column(0)[0].as_py() >= 1400 and not killed.is_set():
            killed.set()
            postgres.kill()
        return plain(batch, schema)

    monkeypatch.setattr(engine, "_cast", killing)
    try:
        with pytest.raises(DataError, match=r"'scored' cannot be written.*unchanged"):
            score_into(model, tmp_path / "t.parquet", place.uri, "scored", batch_rows=100)
    finally:
        postgres.start()
    assert killed.is_set() and place.tables() == set()
    score_into(model, tmp_path / "t.parquet", place.uri, "public.scored", batch_rows=100)
    assert place.run("SELECT count(*) FROM scored") == [(300,)]


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    (tmp_path / "x.db").touch()
    monkeypatch.setattr(tables_database.importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"adbc-driver-sqlite.*ptad\[sql\]"):
        scan_table(Query(f"sqlite:///{tmp_path}/x.db", "SELECT 1"))


def test_command_line(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: pa.Table) -> None:
    def ptad(*arguments: Any) -> Any:
        return CliRunner().invoke(app, [str(a) for a in arguments])

    out = tmp_path / "m"
    done = ptad("fit", "--db", place.uri, "--query", QUERY, "--drop", "key", "--out", out, "--quiet")
    assert done.exit_code == 0, done.stderr
    monkeypatch.setenv("PTAD_DB", place.uri)
    done = ptad("score", out, "--query", QUERY, "--into", "scored")
    assert done.exit_code == 0 and "300 rows" in done.stderr and "the table scored" in done.stderr.replace("\n", " ")
    assert PASSWORD not in done.stderr and done.stdout == ""
    again = ptad("score", out, "--query", QUERY, "--into", "scored")
    assert again.exit_code == 2 and "--replace" in again.stderr
    done = ptad("score", out, "--query", QUERY, "--only-scores")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 301
    for wrong in (["x.csv", "--query", QUERY], [], ["x.csv", "--into", "t", "--out", "o.csv"]):
        assert ptad("score", out, *wrong).exit_code == 2
    monkeypatch.delenv("PTAD_DB")
    for wrong in (["--query", QUERY], ["x.csv", "--into", "t"]):
        refused = ptad("score", out, *wrong)
        assert refused.exit_code == 2 and "--db" in refused.stderr
