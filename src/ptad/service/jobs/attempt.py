"""One attempt at a job: its worker is started and watched, and what became of it is noted."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from ptad.service.disk import EXIT_FULL, FULL
from ptad.service.jobs.process import FITTED, RESULT, TASK
from ptad.service.jobs.supervisor import Worker, end_of, got_further, memory_of_a_worker
from ptad.service.models import new_about, version_name
from ptad.service.store import read_json, write_json

if TYPE_CHECKING:
    from ptad.service.jobs.records import Jobs

logger = logging.getLogger("ptad.service")

FINAL = ("done", "failed", "cancelled")
MOST_ATTEMPTS = 5
MOST_DEATHS = 2  # of workers of a job, one after the other, without anything to go on from


class Attempt:
    """An attempt at a job of the queue."""

    def __init__(self, jobs: Jobs, job: dict[str, Any]) -> None:
        self.jobs, self.job = jobs, job
        self.folder, self.spec = jobs.folder(job["id"]), job["spec"]

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
        worker = jobs.workers[job["id"]] = await Worker.start(self.folder)
        if job["state"] == "cancelled":  # while it was being started
            await worker.kill()
        logger.info("job %s (%s) started, attempt %d", job["id"], job["kind"], job["attempts"])
        code, limit = None, jobs.settings.limits.job_seconds
        try:
            async with asyncio.timeout(limit):
                code = await worker.watch(jobs.tell)
        except TimeoutError:
            await worker.kill()
            self._fail(f"It took longer than {limit:g} s and was stopped.")
        if job["state"] not in FINAL:
            self._close(code)

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
            jobs.change(job, state="failed", ended=time.time(), error=result["error"])
        elif result is not None and job["kind"] == "score":
            jobs.change(job, state="done", ended=time.time(), summary=result["summary"])
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
            self.jobs.change(self.job, state="failed", ended=time.time(), error=error)
        else:
            self._publish({"summary": {**fitted, "scores_error": error}})

    def _publish(self, result: dict[str, Any]) -> None:
        """Take the model that the job has made into the store."""
        models, job, spec = self.jobs.models, self.job, self.spec
        summary = result.get("summary") or {}
        said = {
            "columns_used": summary.get("columns_used"),
            "table": self.jobs.uploads.entries.get(job["table"], {}).get("name"),
        }
        rows = summary.get("training_rows")
        if job["kind"] == "fit":
            fitted_on = {name: spec[name] for name in ("table", "label", "normal")}
            said |= {"training_rows": rows, "fitted_on": fitted_on, "training_tables": [job["table"]]}
            about = new_about(spec["name"], made_by="fit", **said)
        else:
            about = models.next_version(spec["model"], job["kind"], job["table"], new_rows=rows, **said)
        models.publish(self.folder / "model", about, job["model"])
        self.jobs.change(job, state="done", ended=time.time(), summary=summary)
