"""The processes that work on jobs, as the service sees them: started, watched, stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ptad.service.jobs.process import FITTED
from ptad.service.jobs.table_scores import PARTS
from ptad.service.store import remove

TASK, PROGRESS, RESULT, CHECKPOINT = "task.json", "progress.jsonl", "result.json", "checkpoint"
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
        path, size = self.folder / PROGRESS, -1
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


class Told:
    """Reads what a worker has told, entry by entry; each byte once, however long the job goes on."""

    def __init__(self, folder: Path, skip: int = 0) -> None:
        self._path, self._skip, self._place = folder / PROGRESS, skip, 0

    def read(self) -> list[dict[str, Any]]:
        """Return the entries that were written since the last time."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                block = file.read()
        except OSError:
            return []
        whole = block[: block.rfind(b"\n") + 1]
        self._place += len(whole)
        lines = whole.split(b"\n")[:-1]
        skipped, self._skip = lines[self._skip :], max(0, self._skip - len(lines))
        return [_entry(line) for line in skipped]


def _entry(line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
        return found
    except ValueError:  # cut off when the machine went down
        return {}


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
    for name in (CHECKPOINT, "model", FITTED, PARTS):
        remove(folder / name)
