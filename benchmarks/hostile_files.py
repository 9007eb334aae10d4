"""Ten gigabytes without the end of a line, sent to the service and given to the command line.

    python benchmarks/hostile_files.py [--gigabytes 10]

The line is made on the fly and never on a disk: as a body in chunks, as a body with its length, as a gzip file (which
is a thousandth of it), through a pipe, and as a sparse file. Each has to be refused with a reason, with flat memory.
"""

from __future__ import annotations

import argparse
import gzip
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from ptad import PTAD

PIECE = b"x" * 2**20
PROGRAM = str(Path(sys.executable).parent / "ptad")


class Memory(threading.Thread):
    """Peak memory of a process, and of its children, and the most that its folder took on the disk."""

    def __init__(self, pid: int, folder: Path | None = None) -> None:
        super().__init__(daemon=True)
        self.process, self.folder = psutil.Process(pid), folder
        self.own = self.children = self.disk = 0
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.over.wait(0.02):
            try:
                self.own = max(self.own, self.process.memory_info().rss)
                inside = sum(child.memory_info().rss for child in self.process.children(recursive=True))
                self.children = max(self.children, inside)
                if self.folder is not None:
                    used = sum(p.stat().st_blocks * 512 for p in self.folder.rglob("*") if p.is_file())
                    self.disk = max(self.disk, used)
            except (psutil.Error, OSError):
                continue

    def said(self) -> str:
        self.over.set()
        self.join()
        text = f"peak memory {self.own / 2**20:.0f} MiB"
        if self.children:
            text += f", of its children {self.children / 2**20:.0f} MiB"
        return text + (f", on disk {self.disk / 2**20:.0f} MiB" if self.folder is not None else "")


def pieces(n_bytes: int, *, chunked: bool) -> Iterator[bytes]:
    piece = b"%x\r\n" % len(PIECE) + PIECE + b"\r\n" if chunked else PIECE
    for _ in range(n_bytes // len(PIECE)):
        yield piece


def send(port: int, path: str, length: int | None, body: Iterator[bytes]) -> tuple[str, int]:
    """Send until the service has had enough; return its first line with the reason, and the bytes that it took."""
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
            pass  # it stopped listening; what it said is in the buffer, unless it was reset away
        answer = b""
        try:
            while b"}" not in answer and (block := connection.recv(65536)):
                answer += block
        except ConnectionError:
            pass
    found = re.search(rb'"detail":\s*"([^"]*)"', answer)
    status = answer.split(b"\r\n")[0].decode() or "no answer before the end of the connection"
    return f"{status}: {found[1].decode() if found else ''}", sent


def to_the_service(folder: Path, n_bytes: int) -> None:
    log = folder / "log"
    command = [PROGRAM, "serve", str(folder / "model"), "--store", str(folder / "store"), "--port", "0"]
    with log.open("w") as file:
        service = subprocess.Popen(command, stderr=file)
    try:
        while "ready:" not in log.read_text():
            time.sleep(0.1)
        port = int(re.search(r"http://\S+:(\d+)", log.read_text())[1])  # type: ignore[index]
        squeezed = compressed(n_bytes)
        print(f"service at rest: {psutil.Process(service.pid).memory_info().rss / 2**20:.0f} MiB", flush=True)
        for path in ("/v1/tables", "/v1/models/model/score"):
            for name, length, body in (
                ("chunks", None, pieces(n_bytes, chunked=True)),
                ("with its length", n_bytes, pieces(n_bytes, chunked=False)),
                (f"gzip of {len(squeezed) / 2**20:.0f} MiB", len(squeezed), iter([squeezed])),
            ):
                memory = Memory(service.pid, folder / "store")
                started = time.perf_counter()
                said, sent = send(port, path, length, body)
                taken = time.perf_counter() - started
                print(f"{path}, {name}: {said}\n  {taken:.2f} s, {sent / 2**20:.0f} MiB sent, {memory.said()}")
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as answer:
                    assert answer.status == 200
        left = list((folder / "store" / "tmp").iterdir())
        print(f"service still ready; left behind: {left or 'nothing'}", flush=True)
    finally:
        service.terminate()
        assert service.wait(60) == 0


def compressed(n_bytes: int) -> bytes:
    """The line as a gzip file of many members, each the same."""
    return gzip.compress(PIECE * 64, 9) * (n_bytes // (len(PIECE) * 64))


def to_the_command_line(folder: Path, n_bytes: int) -> None:
    for name in ("sparse.csv", "sparse.jsonl"):
        with (folder / name).open("wb") as file:
            file.truncate(n_bytes)
    for name, command in (
        ("sparse file", ["fit", str(folder / "sparse.csv"), "--out", str(folder / "m")]),
        ("sparse JSON lines", ["fit", str(folder / "sparse.jsonl"), "--out", str(folder / "m")]),
        ("pipe", ["score", str(folder / "model"), "-"]),
    ):
        started = time.perf_counter()
        kind = subprocess.PIPE if name == "pipe" else subprocess.DEVNULL
        process = subprocess.Popen([PROGRAM, *command], stdin=kind, stderr=subprocess.PIPE)
        memory = Memory(process.pid)
        sent = 0
        if process.stdin is not None:
            try:
                for piece in pieces(n_bytes, chunked=False):
                    process.stdin.write(piece)
                    sent += len(piece)
                process.stdin.close()
            except BrokenPipeError:
                pass
            process.stdin = None
        _, errors = process.communicate()
        taken = time.perf_counter() - started
        said = " ".join(errors.decode().split())[-160:]
        print(f"{name}: exit code {process.returncode}, {taken:.1f} s, {sent / 2**20:.0f} MiB, {memory.said()}: {said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=int, default=10)
    options = parser.parse_args()
    n_bytes = options.gigabytes * 10**9 // len(PIECE) * len(PIECE)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = np.random.default_rng(0).normal(size=(200, 3))
        PTAD(config={"n_steps": 5}, verbose=0, device="cpu").fit(rows).save(folder / "model")
        to_the_service(folder, n_bytes)
        to_the_command_line(folder, n_bytes)


if __name__ == "__main__":
    main()
