"""Load on the service: 32 clients with single rows, then the same beside an upload of 100,000 rows.

    python benchmarks/load_test.py [--seconds 300] [--clients 32] [--rate 320]

Starts ``ptad serve`` with a model that it fits first, and prints calls per second, percentiles, errors and memory. The
clients live in a process of their own; with ``--cores`` the service and they are held to those processors. With
``--rate`` calls are spread evenly, as independent callers would; without it every client asks again at once.
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
from pathlib import Path

import numpy as np
import psutil


def make_table(n: int, seed: int):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    columns = {f"x{i}": a * (i + 1) / 5 + rng.normal(size=n) for i in range(8)}
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    return pa.table({**columns, "colour": colour, "count": rng.integers(0, 50, n)})


async def client(
    host: str,
    port: int,
    bodies: list[bytes],
    until: float,
    times: list[tuple[float, float]],
    errors: list[str],
    gap: float,
) -> None:
    """One caller on one connection, as plain bytes: the clients must not be what is measured."""
    reader, writer = await asyncio.open_connection(host, port)
    i, due = 0, time.perf_counter() + gap * np.random.default_rng(port).random()
    while time.perf_counter() < until:
        if gap:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += gap
        body = bodies[i % len(bodies)]
        i += 1
        started = time.perf_counter()
        writer.write(
            b"POST /v1/models/load/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        await reader.readexactly(length)
        times.append((started, time.perf_counter() - started))
        if b" 200 " not in head.split(b"\r\n")[0]:
            errors.append(head.split(b"\r\n")[0].decode())
    writer.close()


async def load(
    port: int, seconds: float, clients: int, rate: float, bodies: list[bytes]
) -> tuple[list[tuple[float, float]], list[str]]:
    times: list[tuple[float, float]] = []
    errors: list[str] = []
    until = time.perf_counter() + seconds
    gap = clients / rate if rate else 0.0
    await asyncio.gather(*(client("127.0.0.1", port, bodies[k:], until, times, errors, gap) for k in range(clients)))
    return times, errors


def report(name: str, times: list[tuple[float, float]], errors: list[str], seconds: float) -> None:
    waits = np.sort([wait for _, wait in times]) * 1000
    p50, p95, p99 = np.percentile(waits, [50, 95, 99])
    print(
        f"{name}: {len(waits) / seconds:.0f} calls/s, p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms, "
        f"slowest {waits[-1]:.0f} ms, {len(errors)} errors {sorted(set(errors))[:3]}",
        flush=True,
    )


def clients_main(port: int, seconds: float, clients: int, rate: float, bodies_file: str) -> None:
    """The process of the clients."""
    bodies = [json.dumps(b).encode() for b in json.loads(Path(bodies_file).read_text())]
    times, errors = asyncio.run(load(port, seconds, clients, rate, bodies))
    json.dump([times, errors], sys.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument(
        "--rate", type=float, default=0.0, help="calls per second of all clients; 0: as fast as they can"
    )
    parser.add_argument("--upload-rows", type=int, default=100_000)
    parser.add_argument("--cores", type=int, nargs="*", default=None)
    parser.add_argument("--run-clients", nargs=5, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run_clients:
        port, seconds, clients, rate, file = options.run_clients
        clients_main(int(port), float(seconds), int(clients), float(rate), file)
        return
    from ptad import PTAD  # here: the process of the clients needs none of it
    from ptad.tables import write_table

    if options.cores:
        os.sched_setaffinity(0, options.cores)
    print(f"processors {sorted(os.sched_getaffinity(0))}, load of the machine before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table = make_table(2000, 0)
        PTAD(verbose=0, device="cpu").fit(table).save(folder / "load")
        (folder / "bodies.json").write_text(json.dumps([{"rows": [row]} for row in table.slice(0, 500).to_pylist()]))
        write_table(make_table(options.upload_rows, 1), folder / "large.csv")
        run(folder, options)


def run(folder: Path, options: argparse.Namespace) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = str(Path(sys.executable).parent / "ptad")
    command = [program, "serve", str(folder / "load"), "--store", str(folder / "store"), "--port", "0"]
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(command, stderr=log, env=environment)
    while "ready:" not in (folder / "log").read_text():
        time.sleep(0.1)
    found = re.search(r"http://\S+:(\d+)", (folder / "log").read_text())
    assert found is not None
    port, process = found.group(1), psutil.Process(service.pid)

    def begin(seconds: float) -> subprocess.Popen[bytes]:
        arguments = [port, str(seconds), str(options.clients), str(options.rate), str(folder / "bodies.json")]
        return subprocess.Popen([sys.executable, __file__, "--run-clients", *arguments], stdout=subprocess.PIPE)

    try:
        begin(5).communicate()  # warm
        memory = process.memory_info().rss
        used = process.cpu_times()
        out, _ = begin(options.seconds).communicate()
        now = process.cpu_times()
        times, errors = json.loads(out)
        report(f"single rows, {options.clients} clients", times, errors, options.seconds)
        spent = now.user + now.system - used.user - used.system
        print(f"the service used {1000 * spent / max(len(times), 1):.2f} ms of processor time per call")
        print(f"memory {memory / 2**20:.0f} MiB before, {process.memory_info().rss / 2**20:.0f} MiB after")
        if options.upload_rows:
            beside(folder, options, port, begin)
        print(f"memory at the end {process.memory_info().rss / 2**20:.0f} MiB")
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


def beside(folder: Path, options: argparse.Namespace, port: str, begin) -> None:  # type: ignore[no-untyped-def]
    """Small calls while a large upload is scored; only those during the upload count."""
    seconds = max(60.0, options.upload_rows / 500)
    small = begin(seconds)
    time.sleep(5)
    started = time.perf_counter()
    curl = ["curl", "-sf", "-H", "Content-Type: text/csv", "--data-binary", f"@{folder / 'large.csv'}"]
    url = f"http://127.0.0.1:{port}/v1/models/load/score"
    answer = subprocess.run([*curl, url, "-o", str(folder / "answer.csv")], check=False)
    ended = time.perf_counter()
    out, _ = small.communicate()
    outcome = "answered" if answer.returncode == 0 else "FAILED"
    lines = (folder / "answer.csv").read_bytes().count(b"\n") if (folder / "answer.csv").exists() else 0
    print(f"upload of {options.upload_rows:,} rows: {outcome} with {lines - 1:,} rows in {ended - started:.0f} s")
    times, errors = json.loads(out)
    # one clock for all processes of a machine
    report("single rows during the upload", [t for t in times if started <= t[0] <= ended], errors, ended - started)


if __name__ == "__main__":
    main()
