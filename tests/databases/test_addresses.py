"""Addresses that lead nowhere: what is wrong with them, never a password."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from typer.testing import CliRunner

from ptad.cli import app
from ptad.errors import DataError
from ptad.tables import Query, scan_table


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("postgresql://owner:wrong{}@127.0.0.1:{port}/postgres", "authentication failed"),
        ("postgresql://owner:{}@127.0.0.1:1/postgres", "no connection"),
        ("postgresql://owner:a/{}@127.0.0.1/postgres", "malformed"),
        ("postgresql://owner:a@{}@127.0.0.1/postgres", "malformed"),
        ("postgresql://owner:a#{}@127.0.0.1/postgres", "malformed"),
        ("postgresql://owner@127.0.0.1:1/postgres?password={}", "no connection"),
        ("mysql://root:{}@host/name", "The address of a database must be"),
        ("root:{}@host.db", "The address of a database must be"),
    ],
)
def test_passwords_are_never_shown(
    postgres: PostgresServer, uri: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hush_hush"
    caplog.set_level(logging.DEBUG)
    address = uri.format(secret, port=postgres.port)
    result = CliRunner().invoke(app, ["fit", "--db", address, "--query", "SELECT 1", "--out", "never"])
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())
    assert secret not in result.output + result.stderr + caplog.text + repr(Query(address, "SELECT 1"))


def test_missing_files_and_foreign_files(tmp_path: Path) -> None:
    for uri in (f"sqlite:///{tmp_path}/no.db", f"duckdb:///{tmp_path}/no.db", "no.sqlite"):
        with pytest.raises(DataError, match="There is no database file"):
            scan_table(Query(uri, "SELECT 1"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.db").write_text("no database at all" * 100)
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(DataError, match=r"text\.db"):
            scan_table(Query(f"{kind}:///{tmp_path}/text.db", "SELECT 1"))
