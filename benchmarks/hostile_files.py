"""Send a line of ten gigabytes and a header of a thousand million columns to the service and the command line.

    python benchmarks/hostile_files.py [--gigabytes 10] [--columns 1000000000] [--only line|header]

Both are generated piece by piece: as a chunked body, as a body with its length, as a gzip file (a thousandth of the
size), through a pipe, and the line as a sparse file too. The column names are all different, except in the gzip file.
Each has to be refused with a reason and without the memory growing.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from ptad import PTAD

PIECE = b"x" * 2**20
PROGRAM = str(Path(sys.executable).parent / "ptad")


class Memory(threading.Thread):
    """Tracks the peak memory of a process and of its children, and the peak size of its folder on the disk."""

    def __init__(self, pid: int, folder: Path | None = None) -> None:
        super().__init__(daemon=True)
        self.process, self.folder = psutil.Process(pid), folder
        self.process_peak = self.children = self.disk = 0
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        while True:
            try:
                self.process_peak = max(self.process_peak, self.process.memory_info().rss)
                children = sum(child.memory_info().rss for child in self.process.children(recursive=True))
                self.children = max(self.children, children)
                if self.folder is not None:
                    used = sum(p.stat().st_blocks * 512 for p in self.folder.rglob("*") if p.is_file())
                    self.disk = max(self.disk, used)
            except (psutil.Error, OSError):
                pass  # the process has ended, or a file was removed meanwhile
            if self.over.wait(0.02):
                return

    def report(self) -> str:
        """Stop and return the peaks as text."""
        self.over.set()
        self.join()
        text = f"peak memory {self.process_peak / 2**20:.0f} MiB"
        if self.children:
            text += f", of its children {self.children / 2**20:.0f} MiB"
        return text + (f", on disk {self.disk / 2**20:.0f} MiB" if self.folder is not None else "")


@dataclass(frozen=True)
class Hostile:
    """Huge content: its size, a generator of its pieces, and the content as gzip."""

    name: str
    n_bytes: int
    pieces: Callable[[], Iterator[bytes]]
    gzipped: bytes


def one_line(n_bytes: int) -> Hostile:
    """Return a line without an end."""
    n = n_bytes // len(PIECE)
    member = gzip.compress(PIECE * 64, 9)
    return Hostile("line", n * len(PIECE), lambda: itertools.repeat(PIECE, n), member * (n // 64))


def header(n_columns: int) -> Hostile:
    """Return the header ``c0,c1,c2,...`` and one row; as a gzip file ``a,a,a,...``."""

    def pieces() -> Iterator[bytes]:
        for start in range(0, n_columns, 100_000):
            yield b"".join(b"c%d," % i for i in range(start, min(start + 100_000, n_columns)))
        yield b"last\n1\n"

    digits = sum(
        d * (min(10**d, n_columns) - (10 ** (d - 1) if d > 1 else 0)) for d in range(1, len(str(n_columns - 1)) + 1)
    )
    member = gzip.compress(b"a," * 2**25, 9)
    return Hostile("header", 2 * n_columns + digits + len(b"last\n1\n"), pieces, member * max(1, n_columns // 2**25))


def chunked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces in HTTP's chunked encoding."""
    for piece in pieces:
        yield b"%x\r\n" % len(piece) + piece + b"\r\n"


def send(port: int, path: str, length: int | None, body: Iterator[bytes]) -> tuple[str, int]:
    """Send until the service answers; return status line and reason, and the number of bytes sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        size = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
        head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n%s\r\n\r\n" % (path.encode(), size)
        connection.sendall(head)
        sent = 0
        try:
            for piece in body:
                connection.sendall(piece)
                sent += len(piece)
                if select.select([connection], [], [], 0)[0]:
                    break
        except (ConnectionError, TimeoutError):
            pass  # the service closed the connection; its answer may be in the buffer
        answer = b""
        try:
            while b"}" not in answer and (block := connection.recv(65536)):
                answer += block
        except ConnectionError:
            pass
    detail = re.search(rb'"detail":\s*"([^"]*)"', answer)
    status = answer.split(b"\r\n")[0].decode() or "no answer before the end of the connection"
    return f"{status}: {detail[1].decode() if detail else ''}", sent


def send_to_service(folder: Path, hostile: list[Hostile]) -> None:
    """Send everything to the service in all ways and print what it answers."""
    log = folder / "log"
    command = [PROGRAM, "serve", str(folder / "model"), "--store", str(folder / "store"), "--port", "0"]
    with log.open("w") as file:
        service = subprocess.Popen(command, stderr=file)
    try:
        while "ready:" not in log.read_text():
            time.sleep(0.1)
        port = int(re.search(r"http://\S+:(\d+)", log.read_text())[1])  # type: ignore[index]
        print(f"service at rest: {psutil.Process(service.pid).memory_info().rss / 2**20:.0f} MiB", flush=True)
        for what, path in itertools.product(hostile, ("/v1/tables", "/v1/models/model/score")):
            for name, length, body in (
                ("chunks", None, chunked(what.pieces())),
                ("with its length", what.n_bytes, what.pieces()),
                (f"gzip of {len(what.gzipped) / 2**20:.0f} MiB", len(what.gzipped), iter([what.gzipped])),
            ):
                memory = Memory(service.pid, folder / "store")
                started = time.perf_counter()
                answer, sent = send(port, path, length, body)
                elapsed = time.perf_counter() - started
                print(f"{what.name} to {path}, {name}: {answer}")
                print(f"  {elapsed:.2f} s, {sent / 2**20:.0f} MiB sent, {memory.report()}")
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as ready:
                    assert ready.status == 200
        left = list((folder / "store" / "tmp").iterdir())
        print(f"service still ready; left behind: {left or 'nothing'}", flush=True)
    finally:
        service.terminate()
        assert service.wait(60) == 0


def send_to_command_line(folder: Path, what: Hostile) -> None:
    """Pass the content to commands in all ways; each has to refuse it with exit code 2."""
    (folder / "gzipped.csv.gz").write_bytes(what.gzipped)
    commands = [
        ("gzip file", ["fit", str(folder / "gzipped.csv.gz"), "--out", str(folder / "m")]),
        ("pipe", ["score", str(folder / "model"), "-"]),
        ("pipe", ["fit", "-", "--out", str(folder / "m")]),
    ]
    if what.name == "line":
        for name in ("sparse.csv", "sparse.jsonl"):
            with (folder / name).open("wb") as file:
                file.truncate(what.n_bytes)
            commands.append((f"{name[7:]} as a sparse file", ["fit", str(folder / name), "--out", str(folder / "m")]))
    for name, command in commands:
        started = time.perf_counter()
        kind = subprocess.PIPE if name == "pipe" else subprocess.DEVNULL
        process = subprocess.Popen([PROGRAM, *command], stdin=kind, stderr=subprocess.PIPE)
        memory = Memory(process.pid)
        sent = 0
        if process.stdin is not None:
            try:
                for piece in what.pieces():
                    process.stdin.write(piece)
                    sent += len(piece)
                process.stdin.close()
            except BrokenPipeError:
                pass
            process.stdin = None
        _, errors = process.communicate()
        elapsed = time.perf_counter() - started
        message = " ".join(errors.decode().split())[-160:]
        print(f"{what.name} to ptad {command[0]}, {name}: exit code {process.returncode}: {message}")
        print(f"  {elapsed:.1f} s, {sent / 2**20:.0f} MiB sent, {memory.report()}", flush=True)
        assert process.returncode == 2 and not (folder / "m").exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=int, default=10)
    parser.add_argument("--columns", type=int, default=10**9)
    parser.add_argument("--only", choices=["line", "header"])
    options = parser.parse_args()
    hostile = [one_line(options.gigabytes * 10**9), header(options.columns)]
    hostile = [what for what in hostile if options.only in (None, what.name)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = np.random.default_rng(0).normal(size=(200, 3))
        PTAD(verbose=0, device="cpu").fit(rows).save(folder / "model")
        send_to_service(folder, hostile)
        for what in hostile:
            send_to_command_line(folder, what)


if __name__ == "__main__":
    main()
