"""Measure the service under load: single rows alone, beside uploads, beside slow clients and large bodies, and all.

    python benchmarks/service_load.py [--seconds 600] [--clients 32] [--json FILE]

Starts ``ptad serve`` with a default model of ten columns, gives each of four phases a quarter of the time, prints a
table and writes it as JSON. Service and clients share the machine's processors, or those of ``--cores``; the clients
run in processes of their own, and only calls that began within a phase count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

MIB = 2**20
SCORE = "/v1/models/load/score"
# (phase, call, measure, required bound)
REQUIRED = [
    ("single rows alone", "a row", "per_second", 800),
    ("single rows alone", "a row", "p99", 60),
    ("beside uploads", "a row", "p99", 150),
    ("beside slow clients and large bodies", "/health", "p99", 200),
]
PHASES = {  # clients of each phase
    "single rows alone": ("rows",),
    "beside uploads": ("rows", "upload"),
    "beside slow clients and large bodies": ("row", "health", "table", "half_open", "slow", "large"),
    "all at once": ("rows", "health", "upload", "half_open", "slow", "large"),
}

HOSTILE = ("half_open", "slow", "large")


# the clients, in a separate process -----------------------------------------------------------------------------------


def request(method: str, path: str, kind: str = "", body: bytes = b"", length: int | None = None) -> bytes:
    """Return the bytes of an HTTP request that closes its connection."""
    size = len(body) if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n"
    return f"{head}Content-Type: {kind}\r\n\r\n".encode() + body


class Clients:
    """Clients that send prepared bytes, so that their own work does not distort the measurement."""

    def __init__(self, port: int, until: float, folder: Path) -> None:
        self.port, self.until = port, until
        rows = json.loads((folder / "rows.json").read_text())
        self.bodies = [json.dumps({"rows": [row]}).encode() for row in rows]
        json_kind = "application/json"
        self.requests = {
            "health": request("GET", "/health"),
            "row": request("POST", SCORE, json_kind, self.bodies[0]),
            "table": request("POST", SCORE, "text/csv", (folder / "small.csv").read_bytes()),
            "upload": request("POST", SCORE, "text/csv", (folder / "large.csv").read_bytes()),
            "large": request("POST", SCORE, json_kind, large_body(rows)),
        }
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.statuses: dict[str, Counter[str]] = {}

    def record(self, what: str, started: float, status: str) -> None:
        self.times.setdefault(what, []).append((started, time.perf_counter() - started))
        self.statuses.setdefault(what, Counter())[status] += 1

    async def connection(self, local: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(local, 0))

    async def rows(self, first: int) -> None:
        """Score one row after the other, on one connection."""
        reader, writer = await self.connection()
        while (started := time.perf_counter()) < self.until:
            body = self.bodies[first % len(self.bodies)]
            first += 1
            writer.write(request("POST", SCORE, "application/json", body).replace(b"close", b"keep-alive", 1))
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
                self.record("a row", started, head[9:12].decode())
            except (OSError, EOFError) as error:
                self.record("a row", started, type(error).__name__)
                reader, writer = await self.connection()
        writer.close()

    async def repeated(self, name: str, what: str, gap: float) -> None:
        """Repeat a request, each time on a new connection."""
        while (started := time.perf_counter()) < self.until:
            try:
                reader, writer = await self.connection()
                writer.write(self.requests[name])
                answer = await reader.read()
                writer.close()
                self.record(what, started, answer[9:12].decode() or "closed")
            except OSError as error:
                self.record(what, started, type(error).__name__)
            await asyncio.sleep(gap)

    async def stalled(self, start: bytes, gap: float) -> None:
        """Begin a request and continue one byte at a time, until the service closes the connection."""
        while time.perf_counter() < self.until:
            try:
                reader, writer = await self.connection("127.0.0.2")  # limits of connections are per address
                writer.write(start)
                end = asyncio.create_task(reader.read())
                while not end.done() and time.perf_counter() < self.until:
                    await asyncio.wait([end], timeout=gap)
                    writer.write(b"a")
                end.cancel()
                writer.close()
            except OSError:
                await asyncio.sleep(0.1)

    async def run(self, kinds: list[str], options: argparse.Namespace) -> None:
        half, table = b"GET /health HTTP/1.1\r\nX-Slow: ", request("POST", "/v1/tables", "text/csv", length=10**8)
        starters: dict[str, Callable[[], list[Awaitable[None]]]] = {
            "rows": lambda: [self.rows(k) for k in range(options.clients)],
            "row": lambda: [self.repeated("row", "a row", 0.05)],
            "health": lambda: [self.repeated("health", "/health", 0.05)],
            "table": lambda: [self.repeated("table", "a table of 50 rows", 1.0)],
            "upload": lambda: [self.repeated("upload", f"a table of {options.upload_rows:,} rows", 0.0)],
            "large": lambda: [self.repeated("large", "16 MiB of JSON", 0.0) for _ in range(options.large)],
            "half_open": lambda: [self.stalled(half, 600) for _ in range(options.half_open)],
            "slow": lambda: [self.stalled(table, 9) for _ in range(options.slow)],
        }
        tasks = [asyncio.ensure_future(client) for kind in kinds for client in starters[kind]()]
        await asyncio.wait(tasks, timeout=self.until - time.perf_counter() + 120)


def large_body(rows: list[dict[str, Any]]) -> bytes:
    """Return the largest accepted JSON: about 9,000 rows of fifty columns, most of which the model does not know."""
    more = {f"a rather long name {i:02d}": i / 7 for i in range(40)}
    text = ", ".join(json.dumps({**row, **more}) for row in rows)
    return f'{{"rows": [{", ".join([text] * (16 * MIB // (len(text) + 2)))}]}}'.encode()


# the service ----------------------------------------------------------------------------------------------------------


def make_table(n: int, seed: int) -> Any:
    """Return ten columns, eight of them correlated."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    columns = {f"x{i}": a * (i + 1) / 5 + rng.normal(size=n) for i in range(8)}
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    return pa.table({**columns, "colour": colour, "count": rng.integers(0, 50, n)})


def phase(
    name: str, port: int, service: psutil.Process, folder: Path, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run the clients of a phase; return one line for every kind of call."""
    seconds = options.seconds / len(PHASES)
    numbers = ("clients", "large", "half_open", "slow", "upload_rows")
    given = [f"--{number.replace('_', '-')}={getattr(options, number)}" for number in numbers]
    clients, used = [], service.cpu_times()
    for hostile in (False, True):  # in two processes: measured clients must not wait for the others
        kinds = ",".join(kind for kind in PHASES[name] if (kind in HOSTILE) == hostile)
        command = [sys.executable, __file__, "--run", str(port), str(seconds), str(folder), kinds, *given]
        if kinds:
            clients.append(subprocess.Popen(command, stdout=(folder / f"times-{hostile}.json").open("wb")))
    highest = children = 0
    while any(client.poll() is None for client in clients):
        highest = max(highest, service.memory_info().rss)
        children = max(children, *(p.memory_info().rss for p in service.children()), 0)
        time.sleep(0.2)
    now = service.cpu_times()
    busy = (now.user + now.system - used.user - used.system) / seconds
    times: dict[str, list[tuple[float, float]]] = {}
    statuses: dict[str, dict[str, int]] = {}
    for file in folder.glob("times-*.json"):
        file_times, file_statuses = json.loads(file.read_text())
        times, statuses = times | file_times, statuses | file_statuses
        file.unlink()
    lines = []
    for what, measured in times.items():
        waits = np.array([wait for _, wait in measured]) * 1000
        p50, p95, p99 = np.percentile(waits, [50, 95, 99])
        lines.append(
            {
                "phase": name,
                "call": what,
                "calls": len(waits),
                "per_second": len(waits) / seconds,
                "p50": p50,
                "p95": p95,
                "p99": p99,
                "slowest": waits.max(),
                "answers": statuses[what],
                "memory_mib": highest / MIB,
                "largest_child_mib": children / MIB,
                "processors": busy,
            }
        )
    return lines


def show(lines: list[dict[str, Any]]) -> None:
    """Print the table and whether the required bounds hold."""
    head = ("phase", "call", "calls/s", "p50 ms", "p95 ms", "p99 ms", "slowest", "answers", "memory MiB")
    rows = [head] + [
        (
            line["phase"],
            line["call"],
            f"{line['per_second']:,.1f}",
            *(f"{line[name]:,.0f}" for name in ("p50", "p95", "p99", "slowest")),
            " ".join(f"{status}: {n:,}" for status, n in line["answers"].items()),
            f"{line['memory_mib']:.0f}",
        )
        for line in lines
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip(), flush=True)
    for name, call, measure_name, bound in REQUIRED:
        value = next(
            (line[measure_name] for line in lines if (line["phase"], line["call"]) == (name, call)), float("nan")
        )
        reached = value >= bound if measure_name == "per_second" else value < bound
        print(f"{name}, {call}: {measure_name} {value:,.0f}, required {bound}: {'yes' if reached else 'NO'}")


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Start the service, run all phases, and return the measurements."""
    command = [str(Path(sys.executable).parent / "ptad"), "serve", str(folder / "load"), "--port", "0"]
    with (folder / "log").open("w") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen([*command, "--store", str(folder / "store")], stderr=log, env=environment)
    try:
        while "ready:" not in (folder / "log").read_text():
            time.sleep(0.1)
        port = int(re.search(r"http://\S+:(\d+)", (folder / "log").read_text())[1])  # type: ignore[index]
        service = psutil.Process(process.pid)
        time.sleep(5)
        report: dict[str, Any] = {
            "processors": sorted(os.sched_getaffinity(0)),
            "load_before": os.getloadavg()[0],
            "seconds": options.seconds,
            "memory_before_mib": service.memory_info().rss / MIB,
        }
        report["lines"] = [line for name in PHASES for line in phase(name, port, service, folder, options)]
        time.sleep(5)
        report["memory_after_mib"] = service.memory_info().rss / MIB
        report["tracebacks"] = (folder / "log").read_text().count("Traceback")
        return report
    finally:
        process.send_signal(signal.SIGTERM)
        print(f"the service ended with {process.wait(120)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=32, help="with single rows")
    parser.add_argument("--upload-rows", type=int, default=100_000)
    parser.add_argument("--half-open", type=int, default=300, help="connections that never end their header")
    parser.add_argument("--slow", type=int, default=32, help="uploads of a byte every nine seconds")
    parser.add_argument("--large", type=int, default=2, help="clients that send JSON bodies of 16 MiB")
    parser.add_argument("--cores", type=int, nargs="*", default=None, help="processors for service and clients")
    parser.add_argument("--json", type=Path, default=None, help="write all measurements here")
    parser.add_argument("--run", nargs=4, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        port, seconds, place, kinds = options.run
        clients = Clients(int(port), time.perf_counter() + float(seconds), Path(place))
        asyncio.run(clients.run(kinds.split(","), options))
        json.dump([clients.times, clients.statuses], sys.stdout)
        return
    from ptad import PTAD  # not needed by the process of the clients
    from ptad.tables import write_table

    if options.cores:
        os.sched_setaffinity(0, options.cores)
    with tempfile.TemporaryDirectory() as temporary:
        folder, table = Path(temporary), make_table(2000, 0)
        PTAD(verbose=0, device="cpu").fit(table).save(folder / "load")
        (folder / "rows.json").write_text(json.dumps(table.slice(0, 500).to_pylist()))
        write_table(table.slice(0, 50), folder / "small.csv")
        write_table(make_table(options.upload_rows, 1), folder / "large.csv")
        report = measure(folder, options)
    print(f"processors {report['processors']}, load of the machine before {report['load_before']:.1f}")
    show(report["lines"])
    print(
        f"memory {report['memory_before_mib']:.0f} MiB before, {report['memory_after_mib']:.0f} MiB five seconds after"
    )
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
