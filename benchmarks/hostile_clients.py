"""How others are served while clients hold connections, upload a byte at a time, and send JSON bodies of 16 MiB.

    python benchmarks/hostile_clients.py [--seconds 60] [--half-open 300] [--slow 32] [--large 2]

Starts ``ptad serve`` and prints how long ``/health``, a single row and a small upload take, each on a connection of its
own, and the memory of the service before, at its highest and after.
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

import numpy as np
import psutil
import pyarrow as pa

from ptad import PTAD
from ptad.tables import write_table

COLUMNS = [f"a rather long name {i:02d}" for i in range(40)]


def make_table(n: int) -> pa.Table:
    x = np.random.default_rng(0).normal(size=(n, len(COLUMNS)))
    return pa.table(dict(zip(COLUMNS, x.T, strict=True)))


def request(method: str, path: str, kind: str = "", body: bytes = b"", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n"
    return f"{head}Content-Type: {kind}\r\n\r\n".encode() + body


async def asked(port: int, sent: bytes) -> str:
    """The status of the answer, or what happened instead."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        return answer[9:12].decode() or "closed"
    except OSError as error:
        return type(error).__name__


async def half_open(port: int, until: float) -> None:
    while time.perf_counter() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /health HTTP/1.1\r\nX-Slow: ")
            await reader.read()
            writer.close()
        except OSError:
            await asyncio.sleep(0.1)


async def slow(port: int, until: float) -> None:
    while time.perf_counter() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("POST", "/v1/tables", "text/csv", length=10**8))
            end = asyncio.create_task(reader.read())
            while not end.done() and time.perf_counter() < until:
                writer.write(b"a")
                await asyncio.wait([end], timeout=9)
            end.cancel()
            writer.close()
        except OSError:
            await asyncio.sleep(0.1)


async def timed(
    ask: Callable[[], Awaitable[str]], gap: float, until: float, times: list[float], said: Counter[str]
) -> None:
    while time.perf_counter() < until:
        started = time.perf_counter()
        said[await ask()] += 1
        times.append(time.perf_counter() - started)
        await asyncio.sleep(gap)


async def attack(port: int, options: argparse.Namespace, process: psutil.Process, folder: Path) -> None:
    rows = json.loads((folder / "rows.json").read_text())
    large = json.dumps({"rows": rows * (16 * 2**20 // len(json.dumps(rows)))}).encode()
    row, table = json.dumps({"rows": rows[:1]}).encode(), (folder / "small.csv").read_bytes()
    score = "/v1/models/model/score"
    watched = {
        "/health": (request("GET", "/health"), 0.05),
        "a single row": (request("POST", score, "application/json", row), 0.05),
        "a small table": (request("POST", score, "text/csv", table), 1.0),
        f"JSON of {len(large) / 2**20:.0f} MiB": (request("POST", score, "application/json", large), 0.0),
    }
    until = time.perf_counter() + options.seconds
    work = [half_open(port, until) for _ in range(options.half_open)] + [slow(port, until) for _ in range(options.slow)]
    found: dict[str, tuple[list[float], Counter[str]]] = {name: ([], Counter()) for name in watched}
    for name, (sent, gap) in watched.items():
        for _ in range(1 if gap else options.large):
            ask = lambda sent=sent: asked(port, sent)  # noqa: E731
            work.append(timed(ask, gap, until, *found[name]))
    tasks = [asyncio.create_task(part) for part in work]
    highest = 0
    while time.perf_counter() < until:
        highest = max(highest, process.memory_info().rss)
        await asyncio.sleep(0.05)
    await asyncio.wait(tasks, timeout=60)
    for name, (times, said) in found.items():
        p50, p99 = np.percentile(np.array(times) * 1000, [50, 99]) if times else (np.nan, np.nan)
        print(f"{name}: {len(times):,} times, p50 {p50:.0f} ms, p99 {p99:.0f} ms, answers {dict(said)}")
    print(f"memory at its highest {highest / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--half-open", type=int, default=300)
    parser.add_argument("--slow", type=int, default=32)
    parser.add_argument("--large", type=int, default=2, help="clients that send large JSON bodies")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table = make_table(1000)
        PTAD(verbose=0, device="cpu").fit(table).save(folder / "model")
        (folder / "rows.json").write_text(json.dumps(table.slice(0, 100).to_pylist()))
        write_table(table.slice(0, 50), folder / "small.csv")
        command = [
            Path(sys.executable).parent / "ptad",
            "serve",
            folder / "model",
            "--store",
            folder / "s",
            "--port",
            0,
        ]
        with (folder / "log").open("w") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            service = subprocess.Popen([str(part) for part in command], stderr=log, env=environment)
        try:
            while "ready:" not in (folder / "log").read_text():
                time.sleep(0.1)
            port = int(re.search(r"http://\S+:(\d+)", (folder / "log").read_text())[1])  # type: ignore[index]
            process = psutil.Process(service.pid)
            print(f"load of the machine {os.getloadavg()[0]:.1f}; memory {process.memory_info().rss / 2**20:.0f} MiB")
            asyncio.run(attack(port, options, process, folder))
            time.sleep(5)
            print(f"memory 5 s later {process.memory_info().rss / 2**20:.0f} MiB")
            said = (folder / "log").read_text()
            print(f"log: {len(said.splitlines())} lines, {said.count('Traceback')} tracebacks")
        finally:
            service.send_signal(signal.SIGTERM)
            print(f"the service ended with {service.wait(60)}")


if __name__ == "__main__":
    main()
