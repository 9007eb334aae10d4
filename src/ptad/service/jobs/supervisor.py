"""The processes that work on jobs, as the service sees them: started, watched, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ptad.service.jobs import progress
from ptad.service.jobs.process import CHECKPOINT, FITTED, TASK
from ptad.service.jobs.table_scores import LOCK, PARTS
from ptad.service.store import remove

POLL_SECONDS = 0.2
TERM_SECONDS = 3.0  # between SIGTERM and SIGKILL


class Worker:
    """The process that works on the job in a folder."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self.folder, self._process = folder, process

    @classmethod
    async def start(cls, folder: Path) -> Worker:
        """Start a worker on the task that stands in the folder."""
        environment = {**os.environ, "PTAD_PARENT": str(os.getpid())}
        environment.setdefault("OMP_NUM_THREADS", "1")
        with (folder / "worker.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ptad.service.jobs.process",
                str(folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        return cls(folder, process)

    async def watch(self, told: Callable[[], None]) -> int | None:
        """Wait for the end and return its code; call ``told`` whenever the worker has said something."""
        path, size = self.folder / progress.FILE, -1
        while self._process.returncode is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._process.wait()), POLL_SECONDS)
            with suppress(OSError):
                now = path.stat().st_size
                if now != size:
                    size = now
                    told()
        return self._process.returncode

    async def stop(self) -> None:
        """Ask it to stop, and kill it if it does not."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), TERM_SECONDS)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Stop it at once."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def end_of(code: int | None) -> str:
    """How a worker ended, in words."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        cause = ", perhaps by the system because memory ran out" if -code == signal.SIGKILL else ""
        return f"was killed ({name}{cause})"
    return f"ended with code {code}"


def memory_of_a_worker(given: int, n_workers: int) -> int:
    """Bytes that a worker may use: what was given, or its part of four fifths of the machine's memory."""
    if given:
        return given
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 0
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):
            total = min(total, int(Path(path).read_text()))
    return max(total * 4 // 5 // n_workers, 2**30)


def got_further(folder: Path) -> bool:
    """Whether the last attempt left something to go on from: then it is not the job that ends its workers."""
    begun = (folder / TASK).stat().st_mtime_ns
    left = [*(folder / CHECKPOINT).rglob("*.safetensors"), *folder.glob(FITTED), *(folder / PARTS).glob("*.arrow")]
    return any(path.stat().st_mtime_ns > begun for path in left)


def tidy(folder: Path) -> None:
    """Remove what only an unfinished job needs."""
    for name in (CHECKPOINT, "model", FITTED, PARTS, LOCK):
        remove(folder / name)
