"""Measure rows per second of the local engine, of the service, and of Ray with one and two workers on this machine.

    OMP_NUM_THREADS=1 python benchmarks/throughput.py [--rows 400000]

All four have to return the same scores. Whole commands are timed: for Ray with the start of its workers.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from service_kills import Service


def make_rows(n: int) -> pa.Table:
    """Return a table of eight numbers, a category and a key."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 8))
    x[:, 7] = x[:, 0] - x[:, 1]
    columns = {f"x{i}": x[:, i] for i in range(8)}
    return pa.table({"key": np.arange(n), **columns, "kind": np.array(list("abc"))[rng.integers(0, 3, n)]})


def ptad(folder: Path, *command: str) -> float:
    """Run a command and return how many seconds it takes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "ptad", *command, "--quiet"], cwd=folder, check=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="ptad-throughput-") as work:
        folder = Path(work)
        parquet.write_table(make_rows(2500), folder / "train.parquet")
        parquet.write_table(make_rows(rows), folder / "rows.parquet")
        ptad(folder, "fit", "train.parquet", "--drop", "key", "--out", "model")
        seconds = {"local": ptad(folder, "score", "model", "rows.parquet", "--out", "local.parquet")}
        scores = parquet.read_table(folder / "local.parquet")["score"]
        service = Service(folder, "model")
        try:
            (model,) = service.http.get("/v1/models").json()
            started, body = time.perf_counter(), (folder / "rows.parquet").read_bytes()
            kind = {"Content-Type": "application/vnd.apache.parquet"}
            answer = service.http.post(f"/v1/models/{model['id']}/score", content=body, headers=kind).content
            seconds["service"] = time.perf_counter() - started
        finally:
            service.process.terminate()
            service.process.wait(60)
        assert parquet.read_table(io.BytesIO(answer))["score"].equals(scores)
        for workers in ("1", "2"):
            options = ("--engine", "ray", "--workers", workers, "--out", f"ray{workers}")
            seconds[f"ray, {workers} workers"] = ptad(folder, "score", "model", "rows.parquet", *options)
            parts = sorted((folder / f"ray{workers}").glob("part-*"))
            assert pa.concat_tables(map(parquet.read_table, parts))["score"].equals(scores)
    for name, elapsed in seconds.items():
        print(f"{name}: {rows / elapsed:,.0f} rows/s ({elapsed:.1f} s)")


if __name__ == "__main__":
    main()
