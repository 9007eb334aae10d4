"""What a service is told when it starts: where it listens, what it serves, and how much it takes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from ptad.errors import SettingError

MIB, GIB = 2**20, 2**30
SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """How much one caller may ask for. Every limit has its own message that names it.

    Attributes
    ----------
    body_bytes, json_bytes : int
        Size of an upload, and of any other body.
    table_bytes : int
        Size of a table once it is decompressed.
    rows, columns : int
        Size of a table.
    json_rows, explain_rows : int
        Rows of one JSON call.
    tables, jobs_kept, jobs_waiting, jobs_running : int
        Uploads kept, jobs kept with their results, jobs in the queue, jobs at work at a time.
    uploads_running, json_held : int
        Uploads that may arrive or be answered at a time, and bytes of JSON bodies held in memory at a time.
    job_seconds, request_seconds, intake_seconds : float
        Time for a job, for an answer to start, and for reading an upload.
    intake_memory : int
        Address space of the process that reads an upload.
    waiting_rows : int
        Rows of small calls that may wait to be scored before new calls are turned away.
    models_loaded : int
        Models held in memory; the least recently used one is let go.
    """

    body_bytes: int = GIB
    json_bytes: int = 16 * MIB
    table_bytes: int = 4 * GIB
    rows: int = 10_000_000
    columns: int = 5_000
    json_rows: int = 10_000
    explain_rows: int = 100
    tables: int = 200
    uploads_running: int = 16
    json_held: int = 256 * MIB
    jobs_kept: int = 1000
    jobs_waiting: int = 20
    jobs_running: int = 1
    job_seconds: float = 6 * 3600.0
    request_seconds: float = 60.0
    intake_seconds: float = 300.0
    intake_memory: int = 4 * GIB
    waiting_rows: int = 20_000
    models_loaded: int = 8


@dataclass(frozen=True)
class ServiceSettings:
    """Everything that does not change while the service runs.

    Attributes
    ----------
    store : Path
        Folder for uploads, jobs and models; one service at a time.
    models : tuple of Path
        Model folders that are served where they are, and never changed.
    host, port : str, int
        Where to listen. Anything but a loopback address needs a token.
    token : str, optional
        What callers must send as ``Authorization: Bearer TOKEN``.
    device : str
        Where models run.
    grace_seconds : float
        How long running jobs may go on after SIGTERM; later they stop at their checkpoint and go on at the next start.
    """

    store: Path
    models: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    device: str = "auto"
    grace_seconds: float = 20.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise SettingError(
                f"The token must be ASCII text of at least {SHORTEST_TOKEN} characters. Make one with: "
                "python -c 'import secrets; print(secrets.token_urlsafe(24))'"
            )
        if self.token is None and not is_loopback(self.host):
            raise SettingError(
                f"Without a token the service listens on this machine only, and {self.host!r} is open to others. "
                "Give --token (or the variable PTAD_TOKEN), or listen on 127.0.0.1."
            )
        if not 0 <= self.port <= 65535:
            raise SettingError(f"The port must be a number from 0 to 65535. Got {self.port} instead.")


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be reached from this machine."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
