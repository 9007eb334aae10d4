"""Kill a PostgreSQL server, or the scoring process, at random moments while scores are written; count what is left.

    python benchmarks/database_faults.py [--moments 20] [--rows 20000]

Starts a server of its own in a temporary folder (it needs PostgreSQL's programs). After every kill the server is
started again and the database has to hold either no table of scores or a whole one, equal to that of an
undisturbed run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "databases"))
from places import emptied, postgres_place
from postgres_server import PostgresServer

from ptad import PTAD
from ptad.tables import Query, scan_table, write_table

TINY = {"embedding_dim": 4, "abd_width": 8, "n_steps": 20, "n_folds": 2, "n_reference": 32}


def make_model(folder: Path, n_rows: int) -> None:
    """A table of normal rows and a model of it."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n_rows)
    table = pa.table({"key": np.arange(n_rows), "a": a, "b": 2 * a + rng.normal(size=n_rows)})
    write_table(table, folder / "rows.parquet")
    PTAD(config=TINY, verbose=0, device="cpu", drop=["key"]).fit(table.slice(0, 300)).save(folder / "model")


def digest(server: PostgresServer) -> str | None:
    """A fingerprint of the table of scores, or None if there is none."""
    place = postgres_place(server)
    left = place.tables() - {"scored"}
    assert not left, f"left behind: {left}"
    if "scored" not in place.tables():
        return None
    return hashlib.sha256(repr(place.run("SELECT key, score FROM scored ORDER BY key")).encode()).hexdigest()


def score(server: PostgresServer, folder: Path) -> subprocess.Popen[bytes]:
    """Start scoring the table into the database."""
    command = [Path(sys.executable).with_name("ptad"), "score", "model", "rows.parquet", "--into", "scored", "--quiet"]
    environment = {**os.environ, "PTAD_DB": server.uri, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)


def disturb(server: PostgresServer, folder: Path, moments: int, seconds: float, whole: str) -> None:
    """Kill the server, then the client, at random moments."""
    chance = random.Random(0)
    for victim in ("server", "client"):
        none = complete = 0
        for _ in range(moments):
            emptied(server)
            client = score(server, folder)
            # half of the moments fall into the last tenth, where the table is written
            time.sleep(seconds * (chance.uniform(0.0, 1.0) if chance.random() < 0.5 else chance.uniform(0.85, 1.05)))
            if victim == "server":
                server.kill()
                client.wait()
                server.start()
                assert client.returncode in (0, 2), client.stderr
            else:
                client.send_signal(signal.SIGKILL)
                client.wait()
                time.sleep(0.2)  # the server notices
            found = digest(server)
            assert found in (None, whole), "a half-written table"
            none, complete = none + (found is None), complete + (found is not None)
        print(f"{victim} killed at {moments} moments: {none} times no table, {complete} times the whole one, 0 others")


def memory(server: PostgresServer) -> None:
    """Peak memory while a large query is read."""
    place = emptied(server)
    place.run(
        "CREATE TABLE big AS SELECT i AS key, random() AS a, md5(i::text) AS t FROM generate_series(1, 3000000) i"
    )
    for _ in scan_table(Query(place.uri, "SELECT * FROM big LIMIT 300000")):
        pass
    low = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, rows = time.perf_counter(), 0
    for batch in scan_table(Query(place.uri, "SELECT * FROM big")):
        rows += batch.num_rows
    seconds = time.perf_counter() - started
    high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{rows:,} rows read in {seconds:.1f} s ({rows / seconds:,.0f} rows/s)")
    print(f"peak memory grew by {(high - low) / 1024:.0f} MB over that of 300,000 rows")


def main() -> None:
    """Run it all and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptad-postgres-") as home, tempfile.TemporaryDirectory() as work:
        Path(home).chmod(0o755)
        server, folder = PostgresServer(Path(home)), Path(work)
        try:
            memory(server)
            make_model(folder, options.rows)
            emptied(server)
            started = time.perf_counter()
            assert score(server, folder).wait() == 0
            seconds = time.perf_counter() - started
            whole = digest(server)
            assert whole is not None
            print(f"undisturbed: {options.rows:,} rows scored and written in {seconds:.1f} s")
            disturb(server, folder, options.moments, seconds, whole)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
