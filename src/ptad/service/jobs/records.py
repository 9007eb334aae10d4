"""Jobs: making a model and scoring a table, each in a process of its own, its state on disk.

A job is a folder with ``job.json`` (written by the service only), ``progress.jsonl`` and ``result.json`` (written by
the worker only). A service that starts finds the jobs that were under way and lets them go on: a fit from its
checkpoint, a scoring after the rows that are done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from ptad.service import audit
from ptad.service.disk import EXIT_FULL, FULL, check_room, is_full
from ptad.service.jobs.process import FITTED, RESULT, TASK
from ptad.service.jobs.supervisor import Worker, end_of, got_further, memory_of_a_worker, tidy
from ptad.service.logs import traced
from ptad.service.metrics import Metrics
from ptad.service.models import Models, new_about, new_model_id, version_name
from ptad.service.problems import Problem
from ptad.service.settings import ServiceSettings
from ptad.service.store import Store, new_id, read_json, remove, write_json
from ptad.service.uploads import Uploads

logger = logging.getLogger("ptad.service")

JOB = "job.json"
OPEN, FINAL = ("waiting", "running"), ("done", "failed", "cancelled")
MOST_ATTEMPTS = 5
MOST_DEATHS = 2  # of workers of a job, one after the other, without anything to go on from


class Jobs:
    """The queue of jobs and the processes that work on them."""

    def __init__(
        self, store: Store, settings: ServiceSettings, models: Models, uploads: Uploads, metrics: Metrics
    ) -> None:
        self.store, self.settings, self.metrics = store, settings, metrics
        self.models, self.uploads = models, uploads
        self.entries: dict[str, dict[str, Any]] = {}
        self.stopping = asyncio.Event()
        self._news = asyncio.Event()
        self._workers: dict[str, Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        for folder in sorted(store.jobs.iterdir()):
            job = read_json(folder / JOB)
            if not isinstance(job, dict):
                store.discard(folder)
                continue
            self.entries[folder.name] = job
            if job["state"] == "running":
                logger.info("job %s was under way when the service stopped: it goes on", folder.name)
                self._set(job, state="waiting")
            elif job["state"] in FINAL:
                tidy(folder)
        self._count()

    # asked by callers ---------------------------------------------------------------------------------------------

    def get(self, identifier: str) -> dict[str, Any]:
        """A job, or a problem."""
        if identifier not in self.entries:
            raise Problem(404, "There is no job of that name. GET /v1/jobs lists those there are.")
        return self.entries[identifier]

    def add(self, kind: str, spec: dict[str, Any], title: str) -> dict[str, Any]:
        """Put a job into the queue."""
        waiting = sum(job["state"] in OPEN for job in self.entries.values())
        if waiting >= self.settings.limits.jobs_waiting:
            raise Problem(429, f"{waiting} jobs are waiting already. Wait for one to end, or cancel it.")
        if len(self.entries) >= self.settings.limits.jobs_kept:
            raise Problem(429, f"This service keeps {len(self.entries)} jobs with their results. Delete one first.")
        identifier = new_id("j")
        job = {
            "id": identifier,
            "kind": kind,
            "title": title,
            "state": "waiting",
            "created": time.time(),
            "started": None,
            "ended": None,
            "attempts": 0,
            "deaths": 0,
            "table": spec["table"],
            "model": spec["model"] if kind == "score" else new_model_id(),
            "error": None,
            "summary": None,
            "spec": spec,
        }
        check_room(self.store.root, self.settings.limits.disk_reserve)
        staging = self.store.scratch()
        try:
            staging.mkdir()
            write_json(staging / JOB, job)
            staging.rename(self.folder(identifier))
        except BaseException:
            remove(staging)
            raise
        self.entries[identifier] = job
        audit.note(job=identifier)
        self._count()
        self.start_waiting()
        return job

    def folder(self, identifier: str) -> Path:
        """Where a job lives."""
        return self.store.jobs / identifier

    async def cancel(self, identifier: str) -> dict[str, Any]:
        """Cancel a job."""
        job = self.get(identifier)
        if job["state"] in FINAL:
            raise Problem(409, f"This job is {job['state']} already.")
        self._set(job, state="cancelled", ended=time.time())
        await self._end(identifier)
        await asyncio.to_thread(tidy, self.folder(identifier))  # also of a job that waits to go on
        return job

    async def delete(self, identifier: str) -> None:
        """Delete a job and its result; a model that it made stays."""
        job = self.get(identifier)
        if job["state"] in OPEN:
            await self.cancel(identifier)
        self.entries.pop(identifier, None)
        await asyncio.to_thread(self.store.discard, self.folder(identifier))
        self._count()

    def uses(self, *, table: str | None = None, model: str | None = None) -> bool:
        """Whether an unfinished job needs this table or model."""
        return any(
            job["state"] in OPEN
            and (table == job["table"] or (model is not None and model == job["spec"].get("model")))
            for job in self.entries.values()
        )

    def public(self, job: dict[str, Any]) -> dict[str, Any]:
        """A job as callers see it."""
        shown = {name: value for name, value in job.items() if name not in ("spec", "deaths")}
        spec, summary = job["spec"], job["summary"] or {}
        return shown | {
            "label": spec["label"],
            "normal": spec["normal"],
            "parent": None if job["kind"] == "score" else spec.get("model"),
            "scores": summary or None if job["kind"] == "score" else summary.get("scores"),
        }

    @property
    def news(self) -> asyncio.Event:
        """Set when some job may have news. Whoever takes it before looking at a job misses nothing."""
        return self._news

    # running ------------------------------------------------------------------------------------------------------

    def start_waiting(self) -> None:
        """Start jobs as long as there is room."""
        for identifier, job in self.entries.items():
            if self.stopping.is_set() or len(self._tasks) >= self.settings.limits.jobs_running:
                return
            if job["state"] == "waiting" and identifier not in self._tasks:
                self._tasks[identifier] = asyncio.create_task(self._run(identifier))

    async def _run(self, identifier: str) -> None:
        job = self.entries[identifier]
        try:
            await self._work(identifier, job)
        except Exception as error:
            logger.error("job %s could not be run: %s", identifier, traced(error))
            reason = FULL if is_full(error) else "The worker could not be started."
            self._set(job, state="failed", ended=time.time(), error=reason)
        finally:
            if job["state"] in FINAL:
                await asyncio.to_thread(tidy, self.folder(identifier))
            self._tasks.pop(identifier, None)
            self._workers.pop(identifier, None)
            self._tell()
            self.start_waiting()

    async def _work(self, identifier: str, job: dict[str, Any]) -> None:
        folder = self.folder(identifier)
        if job["state"] in FINAL:  # cancelled before its turn came
            return
        if job["kind"] != "score" and (self.store.models / job["model"]).exists():
            self._publish(job, read_json(folder / RESULT) or {})  # killed between the model and the note of it
            return
        if job["attempts"] >= MOST_ATTEMPTS and not got_further(folder):
            error = f"The worker ended without a result {job['attempts']} times, perhaps for want of memory. "
            self._fail(job, folder, error + "Use fewer rows or columns.")
            return
        self._set(job, state="running", started=job["started"] or time.time(), attempts=job["attempts"] + 1)
        self._write_task(folder, job)
        worker = self._workers[identifier] = await Worker.start(folder)
        if job["state"] == "cancelled":  # while it was being started
            await worker.kill()
        logger.info("job %s (%s) started, attempt %d", identifier, job["kind"], job["attempts"])
        code = None
        try:
            async with asyncio.timeout(self.settings.limits.job_seconds):
                code = await worker.watch(self._tell)
        except TimeoutError:
            await worker.kill()
            limit = self.settings.limits.job_seconds
            self._fail(job, folder, f"It took longer than {limit:g} s and was stopped.")
        self._close(job, folder, code)

    def _write_task(self, folder: Path, job: dict[str, Any]) -> None:
        """What the worker reads: only here do identifiers become paths."""
        task = {**job["spec"], "kind": job["kind"], "device": self.settings.device}
        limits = self.settings.limits
        task["memory"] = memory_of_a_worker(limits.worker_memory, limits.jobs_running)
        task["source"] = str(self.uploads.data(job["table"]))
        task["source_name"] = self.uploads.get(job["table"])["name"]
        if job["kind"] != "fit":
            entry = self.models.get(job["spec"]["model"])
            task |= {"bundle": str(entry.bundle.absolute()), "model_name": version_name(entry.about)}
            fitted_on = entry.about.get("fitted_on")
            task["fitted_on"] = fitted_on if fitted_on and self.uploads.same(fitted_on["table"], job["table"]) else None
            known = entry.about.get("training_tables", ())
            task["training_table"] = any(self.uploads.same(table, job["table"]) for table in known)
        write_json(folder / TASK, task)

    def _close(self, job: dict[str, Any], folder: Path, code: int | None) -> None:
        """Put the end of a worker into words."""
        if job["state"] in FINAL:
            return
        result = read_json(folder / RESULT)
        if result is not None and "error" in result:
            self._set(job, state="failed", ended=time.time(), error=result["error"])
        elif result is not None:
            if job["kind"] == "score":
                self._set(job, state="done", ended=time.time(), summary=result["summary"])
            else:
                self._publish(job, result)
        elif self.stopping.is_set():
            # it goes on from its checkpoint at the next start; that it was asked to stop counts for nothing
            self._set(job, state="waiting", attempts=job["attempts"] - 1)
        elif code == EXIT_FULL:
            self._fail(job, folder, FULL)
        else:
            # killed by something else, such as the system when memory ran out: once more, from the checkpoint
            logger.warning("the worker of job %s %s", job["id"], end_of(code))
            deaths = 1 if got_further(folder) else job.get("deaths", 0) + 1
            self._set(job, state="waiting", deaths=deaths)
            if deaths >= MOST_DEATHS:
                error = f"Its worker {end_of(code)}, {deaths} times in a row. Use fewer rows or columns."
                self._fail(job, folder, error)

    def _fail(self, job: dict[str, Any], folder: Path, error: str) -> None:
        """End a job without a result; a model whose training table could not be scored is there, and stays."""
        fitted = read_json(folder / FITTED) if job["spec"].get("score") else None
        if fitted is None:
            self._set(job, state="failed", ended=time.time(), error=error)
        else:
            self._publish(job, {"summary": {**fitted, "scores_error": error}})

    def _publish(self, job: dict[str, Any], result: dict[str, Any]) -> None:
        """Take the model that a job has made into the store."""
        spec, summary = job["spec"], result.get("summary") or {}
        table = self.uploads.entries.get(job["table"], {}).get("name")
        fitted_on = {name: spec[name] for name in ("table", "label", "normal")}
        rows, columns = summary.get("training_rows"), summary.get("columns_used")
        if job["kind"] == "fit":
            about = new_about(
                spec["name"],
                training_rows=rows,
                columns_used=columns,
                table=table,
                made_by="fit",
                fitted_on=fitted_on,
                training_tables=[job["table"]],
            )
        else:
            about = self.models.next_version(
                spec["model"], job["kind"], job["table"], new_rows=rows, columns_used=columns, table=table
            )
        self.models.publish(self.folder(job["id"]) / "model", about, job["model"])
        self._set(job, state="done", ended=time.time(), summary=summary)

    async def _end(self, identifier: str) -> None:
        """Stop the work on a job, if there is any."""
        worker, task = self._workers.get(identifier), self._tasks.get(identifier)
        if worker is not None:
            await worker.stop()
        if task is not None:
            await asyncio.wait([task], timeout=10)

    async def stop(self) -> None:
        """Let running jobs end within the grace; what is left stops and goes on at the next start."""
        self.request_stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=self.settings.grace_seconds)
        for identifier in list(self._tasks):
            await self._end(identifier)

    def _set(self, job: dict[str, Any], **values: Any) -> None:
        job.update(values)
        folder = self.folder(job["id"])
        try:
            if folder.is_dir():
                write_json(folder / JOB, job)
        except OSError as error:  # what is in memory counts; a service that starts again would let the job go on
            logger.error("the state of job %s could not be written: %s", job["id"], traced(error))
        self._count()
        self._tell()

    def request_stop(self) -> None:
        """Start no more jobs, and end the streams of events."""
        self.stopping.set()
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _count(self) -> None:
        for state in (*OPEN, *FINAL):
            self.metrics.jobs.labels(state).set(sum(job["state"] == state for job in self.entries.values()))
