"""Settings of the service: where it listens, what it serves, and its limits."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ptad.errors import SettingError
from ptad.settings import Settings, setting

MIB, GIB, TIB = 2**20, 2**30, 2**40
_UNITS = {None: 1, "KiB": 2**10, "MiB": MIB, "GiB": GIB, "TiB": TIB}
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits(Settings):
    """How much callers may send, keep and run.

    Attributes
    ----------
    body_bytes, json_bytes, message_bytes : int
        Size of an upload, of a body of JSON rows, and of any other body.
    table_bytes : int
        Size of a table once it is decompressed.
    rows, columns : int
        Size of a table.
    json_rows, explain_rows : int
        Rows of one JSON call.
    tables, jobs_kept, jobs_waiting, jobs_running : int
        Uploads kept, jobs kept with their results, jobs in the queue, jobs that run at the same time.
    uploads_running, small_uploads_running, small_upload_bytes : int
        Uploads that are received or answered at a time; those of at most ``small_upload_bytes`` have places of their
        own, which they take once they have arrived.
    json_held : int
        Bytes of bodies held in memory at a time: JSON, and the beginnings of uploads.
    connections, connections_per_address : int
        Open connections, of all clients and of one address. When they are used up, the one that has waited longest
        without a request is closed for a new one.
    header_seconds, stall_seconds : float
        Time for the header of a request to arrive, and for a client to take the next part of an answer.
    body_window_seconds, body_speed, body_seconds : float, int, float
        Waiting for a body is timed: every ``body_window_seconds`` of it must bring ``body_speed`` bytes per second, and
        all of it may last ``body_seconds``.
    job_seconds, request_seconds, reading_seconds : float
        Time for a job, for an answer to start, and for reading an upload.
    reading_memory : int
        Address space of the process that reads an upload.
    worker_memory : int
        Data memory of the process that works on a job; 0 stands for four fifths of the machine's memory, divided by the
        jobs that may run at a time.
    disk_reserve : int
        Room that stays free on the disk of the store; uploads and jobs that would use it are refused.
    waiting_rows : int
        Rows of small calls that may wait to be scored before new calls are turned away.
    models_loaded : int
        Models held in memory; the least recently used one is released.
    """

    name: ClassVar[str] = "limits"

    body_bytes: int = setting(GIB, low=1, high=TIB)
    json_bytes: int = setting(16 * MIB, low=1, high=256 * MIB)
    message_bytes: int = setting(MIB, low=1, high=16 * MIB)
    table_bytes: int = setting(4 * GIB, low=1, high=4 * TIB)
    rows: int = setting(10_000_000, low=1, high=10_000_000_000)
    columns: int = setting(5_000, low=1, high=100_000)
    json_rows: int = setting(10_000, low=1, high=1_000_000)
    explain_rows: int = setting(100, low=1, high=10_000)
    tables: int = setting(200, low=1, high=100_000)
    uploads_running: int = setting(16, low=1, high=1000)
    small_uploads_running: int = setting(16, low=1, high=1000)
    small_upload_bytes: int = setting(MIB, low=1, high=64 * MIB)
    json_held: int = setting(128 * MIB, low=1, high=64 * GIB)
    connections: int = setting(512, low=1, high=100_000)
    connections_per_address: int = setting(256, low=1, high=100_000)
    header_seconds: float = setting(10.0, low=0.1, high=600.0)
    stall_seconds: float = setting(30.0, low=0.1, high=3600.0)
    body_window_seconds: float = setting(10.0, low=0.1, high=600.0)
    body_speed: int = setting(8 * 1024, low=1, high=GIB)
    body_seconds: float = setting(3600.0, low=1.0, high=24 * 3600.0)
    jobs_kept: int = setting(1000, low=1, high=100_000)
    jobs_waiting: int = setting(20, low=1, high=10_000)
    jobs_running: int = setting(1, low=1, high=64)
    job_seconds: float = setting(6 * 3600.0, low=1.0, high=30 * 24 * 3600.0)
    request_seconds: float = setting(60.0, low=0.1, high=3600.0)
    reading_seconds: float = setting(300.0, low=1.0, high=24 * 3600.0)
    reading_memory: int = setting(4 * GIB, low=256 * MIB, high=TIB)
    worker_memory: int = setting(0, low=0, high=16 * TIB)
    disk_reserve: int = setting(16 * MIB, low=0, high=TIB)
    waiting_rows: int = setting(20_000, low=1, high=10_000_000)
    models_loaded: int = setting(8, low=1, high=1000)

    def changed(self, pairs: Sequence[str]) -> Limits:
        """Return limits with some changed, each given as ``NAME=NUMBER``; KiB, MiB, GiB and TiB may follow."""
        values: dict[str, Any] = {}
        for pair in pairs:
            name, _, text = (part.strip() for part in pair.partition("="))
            match = re.fullmatch(r"([0-9.]+)\s*([KMGT]iB)?", text)
            try:
                number = float(match[1]) * _UNITS[match[2]]  # type: ignore[index]
            except (TypeError, ValueError):
                raise SettingError(f"A limit is given as NAME=NUMBER, such as connections=512. Got {pair!r}.") from None
            values[name] = int(number) if number.is_integer() else number
        return self.replace(values)


@dataclass(frozen=True)
class ServiceSettings:
    """Settings that do not change while the service runs."""

    store: Path  # folder for uploads, jobs and models; one service at a time
    models: tuple[Path, ...] = ()  # model folders that are served where they are, and never changed
    host: str = "127.0.0.1"  # anything but a loopback address needs a token
    port: int = 8000
    token: str | None = None  # callers must send it as ``Authorization: Bearer TOKEN``
    device: str = "auto"  # that models run on
    grace_seconds: float = 20.0  # for running jobs after SIGTERM; then they stop at their checkpoint, to be resumed
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise SettingError(
                f"The token must be ASCII text of at least {SHORTEST_TOKEN} characters. Make one with: "
                "python -c 'import secrets; print(secrets.token_urlsafe(24))'"
            )
        if self.token is None and not is_loopback(self.host):
            raise SettingError(
                f"Without a token the service listens on this machine only, and {self.host!r} is open to others.",
                "Give {token} (or the variable PTAD_TOKEN), or listen on 127.0.0.1.",
            )
        if not 0 <= self.port <= 65535:
            raise SettingError(f"The port must be a number from 0 to 65535. Got {self.port} instead.")


@functools.lru_cache(256)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address can only be reached from this machine."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
