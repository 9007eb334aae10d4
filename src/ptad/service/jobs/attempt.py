"""One attempt at a job: its worker, a process of its own, is started and watched, and what became of it is noted."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptad.files import read_json, write_json
from ptad.service.jobs import progress
from ptad.service.jobs.process import CHECKPOINT, EXIT_FULL, FITTED, MODEL, RESULT, TASK
from ptad.service.jobs.table_scores import LOCK, PARTS
from ptad.service.models import new_about, version_name
from ptad.service.reasons import FULL
from ptad.service.store import remove

if TYPE_CHECKING:
    from ptad.service.jobs.records import Jobs

logger = logging.getLogger("ptad.service")

FINAL = ("done", "failed", "cancelled")
MOST_ATTEMPTS = 5
MOST_DEATHS = 2  # of workers of a job, one after the other, without anything to go on from
POLL_SECONDS = 0.2
TERM_SECONDS = 3.0  # between SIGTERM and SIGKILL


class Attempt:
    """An attempt at a job of the queue."""

    def __init__(self, jobs: Jobs, job: dict[str, Any]) -> None:
        self.jobs, self.job = jobs, job
        self.folder, self.spec = jobs.folder(job["id"]), job["spec"]
        self._worker: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Let a worker do the job; in the end it is in a final state, or waits for another attempt."""
        jobs, job = self.jobs, self.job
        if job["state"] in FINAL:  # cancelled before its turn came
            return
        if job["kind"] != "score" and (jobs.store.models / job["model"]).exists():
            self._publish(read_json(self.folder / RESULT) or {})  # killed between the model and the note of it
            return
        if job["attempts"] >= MOST_ATTEMPTS and not got_further(self.folder):
            error = f"The worker ended without a result {job['attempts']} times, perhaps for want of memory. "
            self._fail(error + "Use fewer rows or columns.")
            return
        jobs.change(job, state="running", started=job["started"] or time.time(), attempts=job["attempts"] + 1)
        self._write_task()
        worker = self._worker = await _start(self.folder)
        if job["state"] == "cancelled":  # while it was being started
            await self._kill(worker)
        logger.info("job %s (%s) started, attempt %d", job["id"], job["kind"], job["attempts"])
        limit = jobs.settings.limits.job_seconds
        try:
            async with asyncio.timeout(limit):
                await self._watch(worker)
        except TimeoutError:
            await self._kill(worker)
            self._fail(f"It took longer than {limit:g} s and was stopped.")
        if job["state"] not in FINAL:
            self._close(worker.returncode)

    async def stop(self) -> None:
        """Ask the worker to stop, and kill it if it does not."""
        if self._worker is not None:
            with suppress(ProcessLookupError):
                self._worker.terminate()
            try:
                await asyncio.wait_for(self._worker.wait(), TERM_SECONDS)
            except TimeoutError:
                await self._kill(self._worker)

    async def _kill(self, worker: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()

    async def _watch(self, worker: asyncio.subprocess.Process) -> None:
        """Wait for the end; whoever follows the job is told whenever the worker has said something."""
        path, size = self.folder / progress.FILE, -1
        while worker.returncode is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(worker.wait()), POLL_SECONDS)
            with suppress(OSError):
                before, size = size, path.stat().st_size
                if size != before:
                    self.jobs.tell()

    def _write_task(self) -> None:
        """What the worker reads: only here do identifiers become paths."""
        jobs, table = self.jobs, self.job["table"]
        limits, uploads = jobs.settings.limits, jobs.uploads
        task = {
            **self.spec,
            "kind": self.job["kind"],
            "device": jobs.settings.device,
            "memory": memory_of_a_worker(limits.worker_memory, limits.jobs_running),
            "source": str(uploads.data(table)),
            "source_name": uploads.get(table)["name"],
        }
        if self.job["kind"] != "fit":
            entry = jobs.models.get(self.spec["model"])
            fitted_on, known = entry.about.get("fitted_on"), entry.about.get("training_tables", ())
            task |= {
                "bundle": str(entry.bundle.absolute()),
                "model_name": version_name(entry.about),
                "fitted_on": fitted_on if fitted_on and uploads.same(fitted_on["table"], table) else None,
                "training_table": any(uploads.same(other, table) for other in known),
            }
        write_json(self.folder / TASK, task)

    def _close(self, code: int | None) -> None:
        """Note the end of a worker."""
        jobs, job, result = self.jobs, self.job, read_json(self.folder / RESULT)
        if result is not None and "error" in result:
            jobs.end(job, "failed", error=result["error"])
        elif result is not None and job["kind"] == "score":
            jobs.end(job, "done", summary=result["summary"])
        elif result is not None:
            self._publish(result)
        elif jobs.stopping.is_set():
            # it goes on from its checkpoint at the next start; that it was asked to stop counts for nothing
            jobs.change(job, state="waiting", attempts=job["attempts"] - 1)
        elif code == EXIT_FULL:
            self._fail(FULL)
        else:
            # killed by something else, such as the system when memory ran out: once more, from the checkpoint
            logger.warning("the worker of job %s %s", job["id"], end_of(code))
            deaths = 1 if got_further(self.folder) else job.get("deaths", 0) + 1
            jobs.change(job, state="waiting", deaths=deaths)
            if deaths >= MOST_DEATHS:
                self._fail(f"Its worker {end_of(code)}, {deaths} times in a row. Use fewer rows or columns.")

    def _fail(self, error: str) -> None:
        """End the job without a result; a model whose training table could not be scored is there, and stays."""
        fitted = read_json(self.folder / FITTED) if self.spec.get("score") else None
        if fitted is None:
            self.jobs.end(self.job, "failed", error=error)
        else:
            self._publish({"summary": {**fitted, "scores_error": error}})

    def _publish(self, result: dict[str, Any]) -> None:
        """Take the model that the job has made into the store."""
        models, job, spec = self.jobs.models, self.job, self.spec
        summary = result.get("summary") or {}
        rows, table = summary.get("training_rows"), self.jobs.uploads.entries.get(job["table"], {}).get("name")
        said = {"columns_used": summary.get("columns_used"), "table": table}
        if job["kind"] == "fit":
            fitted_on = {name: spec[name] for name in ("table", "label", "normal")}
            said |= {"training_rows": rows, "fitted_on": fitted_on, "training_tables": [job["table"]]}
            about = new_about(spec["name"], made_by="fit", **said)
        else:
            about = models.next_version(spec["model"], job["kind"], job["table"], new_rows=rows, **said)
        models.publish(self.folder / MODEL, about, job["model"])
        self.jobs.end(job, "done", summary=summary)


async def _start(folder: Path) -> asyncio.subprocess.Process:
    """Start a worker on the task that stands in the folder."""
    with (folder / "worker.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ptad.service.jobs.process",
            str(folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"OMP_NUM_THREADS": "1", **os.environ, "PTAD_PARENT": str(os.getpid())},
            start_new_session=True,
        )


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
    for name in (CHECKPOINT, MODEL, FITTED, PARTS, LOCK):
        remove(folder / name)
