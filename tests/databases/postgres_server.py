"""A PostgreSQL server of our own, in a temporary folder, that can be stopped and killed."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import psutil

from stopping import HANG, wait_until

PASSWORD = "pass/w0rd@x"  # signs that have to be escaped in a URI
ESCAPED = "pass%2Fw0rd%40x"


def find_programs() -> Path | None:
    """The folder of initdb and postgres, or None."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found is not None:
        places.append(Path(found).resolve().parent)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def why_not() -> str | None:
    """Why no server can be started here, or None."""
    if find_programs() is None:
        return "PostgreSQL is not installed: run tests/system_programs.sh"
    if os.getuid() == 0 and not any(user.pw_name == "postgres" for user in pwd.getpwall()):
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to outgoing connections: it stays free."""
    while True:
        port = random.SystemRandom().randint(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class PostgresServer:
    """A server on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = find_programs()
        assert programs is not None
        self.programs = programs
        self.user: int | None = None
        if os.getuid() == 0:
            self.user = pwd.getpwnam("postgres").pw_uid
            os.chown(folder, self.user, -1)
        self.port = free_port()
        secret = folder / "password"
        secret.write_text(PASSWORD, encoding="ascii")
        secret.chmod(0o644)
        self._run("initdb", "-D", self.data, "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    @property
    def uri(self) -> str:
        return f"postgresql://owner:{ESCAPED}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start and wait until it answers."""
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "shared_buffers=16MB"]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.data, "-p", str(self.port), *options],
            stdout=log,
            stderr=log,
            user=self.user,
            cwd=self.folder,
        )
        log.close()
        process, said = self.process, (self.folder / "log").read_text

        def ready() -> bool:
            assert process.poll() is None, said()
            command = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            return subprocess.run(command, check=False).returncode == 0

        wait_until(ready, said)

    def kill(self) -> None:
        """End the server and all its connections at once, without any tidying up."""
        assert self.process is not None
        server = psutil.Process(self.process.pid)
        server.suspend()  # it starts no more
        children = server.children(recursive=True)
        for process in (server, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        wait_until(lambda: not any(map(_lives, children)))  # only then are all connections closed
        # the next start must not take the lock file for that of a living server
        Path(self.data, "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End the server in order."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(HANG)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self.programs / program, *arguments]
        subprocess.run(command, check=True, user=self.user, cwd=self.folder, capture_output=True)


def _lives(process: psutil.Process) -> bool:
    """Whether a process still runs; one that nobody has asked for its end does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
