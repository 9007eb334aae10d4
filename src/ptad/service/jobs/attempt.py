"""One attempt at a job: starts a worker, watches it, and records how it ended."""

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
from ptad.service.error_messages import DISK_FULL
from ptad.service.jobs import FINAL
from ptad.service.jobs.table_scores import LOCK, PARTS
from ptad.service.jobs.worker import CHECKPOINT, EXIT_DISK_FULL, FITTED, MODEL, RESULT, TASK
from ptad.service.models import new_metadata
from ptad.service.process_limits import worker_memory
from ptad.service.store import remove

if TYPE_CHECKING:
    from ptad.service.jobs.queue import Jobs

logger = logging.getLogger("ptad.service")

MOST_ATTEMPTS = 5
MOST_DEATHS = 2  # of workers of a job, one after the other, without a new checkpoint
TERM_SECONDS = 3.0  # between SIGTERM and SIGKILL


class Attempt:
    """An attempt at a job of the queue."""

    def __init__(self, jobs: Jobs, job: dict[str, Any]) -> None:
        self.jobs, self.job = jobs, job
        self.folder, self.spec = jobs.folder(job["id"]), job["spec"]
        self._worker: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Let a worker do the job; at the end the job is in a final state, or waits for another attempt."""
        jobs, job = self.jobs, self.job
        if job["state"] in FINAL:  # cancelled while it waited
            return
        if job["kind"] != "score" and (jobs.store.models / job["model"]).exists():
            self._publish(read_json(self.folder / RESULT) or {})  # killed after the model was published
            return
        if job["attempts"] >= MOST_ATTEMPTS and not made_progress(self.folder):
            times = f"The worker ended without a result {job['attempts']} times, possibly because memory ran out."
            self._fail(f"{times} Use fewer rows or columns.")
            return
        jobs.update(job, state="running", started=job["started"] or time.time(), attempts=job["attempts"] + 1)
        self._write_task()
        worker = self._worker = await _start_worker(self.folder)
        if job["state"] == "cancelled":  # while the worker was started
            await self._kill(worker)
        logger.info("job %s (%s) started, attempt %d", job["id"], job["kind"], job["attempts"])
        limit = jobs.settings.limits.job_seconds
        try:
            async with asyncio.timeout(limit):
                await worker.wait()
        except TimeoutError:
            await self._kill(worker)
            self._fail(f"It took longer than {limit:g} s and was stopped.")
        if job["state"] not in FINAL:
            self._record_exit(worker.returncode)

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

    def _write_task(self) -> None:
        """Write what the worker reads; here identifiers become paths."""
        jobs, table = self.jobs, self.job["table"]
        limits, uploads = jobs.settings.limits, jobs.uploads
        task = {
            **self.spec,
            "kind": self.job["kind"],
            "device": jobs.settings.device,
            "memory": worker_memory(limits.worker_memory, limits.jobs_running),
            "source": str(uploads.path(table)),
            "source_name": uploads.get(table)["name"],
        }
        if self.job["kind"] != "fit":
            model = jobs.models.get(self.spec["model"])
            fitted_on, training_tables = model.metadata.get("fitted_on"), model.metadata.get("training_tables", ())
            task |= {
                "bundle": str(model.bundle.absolute()),
                "model_name": model.display_name,
                "fitted_on": fitted_on if fitted_on and uploads.same(fitted_on["table"], table) else None,
                "training_table": any(uploads.same(other, table) for other in training_tables),
            }
        write_json(self.folder / TASK, task)

    def _record_exit(self, code: int | None) -> None:
        """Record how a worker ended."""
        jobs, job, result = self.jobs, self.job, read_json(self.folder / RESULT)
        if result is not None and "error" in result:
            jobs.finish(job, "failed", error=result["error"])
        elif result is not None and job["kind"] == "score":
            jobs.finish(job, "done", summary=result["summary"])
        elif result is not None:
            self._publish(result)
        elif jobs.stopping.is_set():
            # it resumes from its checkpoint at the next start; this attempt does not count
            jobs.update(job, state="waiting", attempts=job["attempts"] - 1)
        elif code == EXIT_DISK_FULL:
            self._fail(DISK_FULL)
        else:
            # killed from outside, such as by the system when memory ran out: once more, from the checkpoint
            logger.warning("the worker of job %s %s", job["id"], describe_exit(code))
            deaths = 1 if made_progress(self.folder) else job.get("deaths", 0) + 1
            jobs.update(job, state="waiting", deaths=deaths)
            if deaths >= MOST_DEATHS:
                self._fail(f"Its worker {describe_exit(code)}, {deaths} times in a row. Use fewer rows or columns.")

    def _fail(self, error: str) -> None:
        """End the job without a result; a model that is fitted stays if only its table could not be scored."""
        summary = read_json(self.folder / FITTED) if self.spec.get("score") else None
        if summary is None:
            self.jobs.finish(self.job, "failed", error=error)
        else:
            self._publish({"summary": {**summary, "scores_error": error}})

    def _publish(self, result: dict[str, Any]) -> None:
        """Move the model that the job has made into the store, and end the job."""
        models, job, spec = self.jobs.models, self.job, self.spec
        summary = result.get("summary") or {}
        n_rows, table = summary.get("training_rows"), self.jobs.uploads.entries.get(job["table"], {}).get("name")
        origin = {"columns_used": summary.get("columns_used"), "table": table}
        if job["kind"] == "fit":
            fitted_on = {name: spec[name] for name in ("table", "label", "normal")}
            origin |= {"training_rows": n_rows, "fitted_on": fitted_on, "training_tables": [job["table"]]}
            metadata = new_metadata(spec["name"], made_by="fit", **origin)
        else:
            metadata = models.next_version(spec["model"], job["kind"], job["table"], new_rows=n_rows, **origin)
        models.publish(self.folder / MODEL, metadata, job["model"])
        self.jobs.finish(job, "done", summary=summary)


async def _start_worker(folder: Path) -> asyncio.subprocess.Process:
    with (folder / "worker.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ptad.service.jobs.worker", str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"OMP_NUM_THREADS": "1", **os.environ, "PTAD_PARENT": str(os.getpid())},
            start_new_session=True,
        )


def describe_exit(code: int | None) -> str:
    """Return how a worker ended, as a part of a sentence."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        cause = ", perhaps by the system because memory ran out" if -code == signal.SIGKILL else ""
        return f"was killed ({name}{cause})"
    return f"ended with code {code}"


def made_progress(folder: Path) -> bool:
    """Return whether the last attempt left something to resume from: then the job does not kill its workers."""
    started = (folder / TASK).stat().st_mtime_ns
    paths = [*(folder / CHECKPOINT).rglob("*.safetensors"), *folder.glob(FITTED), *(folder / PARTS).glob("*.arrow")]
    return any(path.stat().st_mtime_ns > started for path in paths)


def remove_intermediate_files(folder: Path) -> None:
    """Remove what only an unfinished job needs."""
    for name in (CHECKPOINT, MODEL, FITTED, PARTS, LOCK):
        remove(folder / name)
