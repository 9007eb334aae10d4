"""The queue of jobs, each a folder of the store.

The service writes ``job.json``, the worker ``progress.jsonl`` and ``result.json``. A service that starts resumes the
jobs that were running: a fit from its checkpoint, a scoring after the rows that are done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from ptad.files import read_json, write_json
from ptad.service.error_messages import short_traceback, user_message
from ptad.service.jobs import FINAL, WAITING_OR_RUNNING
from ptad.service.jobs.attempt import Attempt, remove_intermediate_files
from ptad.service.metrics import Metrics
from ptad.service.models import Models
from ptad.service.problems import Problem
from ptad.service.settings import ServiceSettings
from ptad.service.store import Store, new_id, remove
from ptad.service.uploads import Uploads

logger = logging.getLogger("ptad.service")

JOB = "job.json"


class Jobs:
    """The queue of jobs, and the workers that are running."""

    def __init__(
        self, store: Store, settings: ServiceSettings, models: Models, uploads: Uploads, metrics: Metrics
    ) -> None:
        self.store, self.settings, self.metrics = store, settings, metrics
        self.models, self.uploads = models, uploads
        self.entries: dict[str, dict[str, Any]] = {}
        self.stopping = asyncio.Event()  # set once no more jobs are started and streams of events end
        self._running: dict[str, tuple[Attempt, asyncio.Task[None]]] = {}
        for folder in sorted(store.jobs.iterdir()):
            job = read_json(folder / JOB)
            if not isinstance(job, dict):
                store.discard(folder)
                continue
            self.entries[folder.name] = job
            if job["state"] == "running":
                logger.info("job %s was running when the service stopped and is resumed", folder.name)
                self.update(job, state="waiting")
            elif job["state"] in FINAL:
                remove_intermediate_files(folder)
        self._count()

    # for routes -------------------------------------------------------------------------------------------------------

    def get(self, identifier: str) -> dict[str, Any]:
        """Return a job; raise a problem if there is none."""
        if identifier not in self.entries:
            raise Problem(404, "There is no job with this identifier. GET /v1/jobs lists all jobs.")
        return self.entries[identifier]

    def add(self, kind: str, spec: dict[str, Any], title: str) -> dict[str, Any]:
        """Add a job to the queue."""
        limits = self.settings.limits
        unfinished = sum(job["state"] in WAITING_OR_RUNNING for job in self.entries.values())
        if unfinished >= limits.jobs_waiting:
            raise Problem(429, f"{unfinished} jobs are waiting or running. Wait for one to end, or cancel it.")
        if len(self.entries) >= limits.jobs_kept:
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
            "model": spec["model"] if kind == "score" else new_id("m"),
            "error": None,
            "summary": None,
            "spec": spec,
        }
        self.store.check_space(limits.disk_reserve)
        folder = self.store.temporary_path()
        try:
            folder.mkdir()
            write_json(folder / JOB, job)
            folder.rename(self.folder(identifier))
        finally:
            remove(folder)
        self.entries[identifier] = job
        self._count()
        self.start_waiting()
        return job

    def folder(self, identifier: str) -> Path:
        """Return the folder of a job."""
        return self.store.jobs / identifier

    async def cancel(self, identifier: str) -> dict[str, Any]:
        """Cancel a job."""
        job = self.get(identifier)
        if job["state"] in FINAL:
            raise Problem(409, f"This job is {job['state']} already.")
        self.finish(job, "cancelled")
        await self._stop(identifier)
        await asyncio.to_thread(remove_intermediate_files, self.folder(identifier))  # what the worker still wrote
        return job

    async def delete(self, identifier: str) -> None:
        """Delete a job and its result; a model that it made stays."""
        job = self.get(identifier)
        if job["state"] in WAITING_OR_RUNNING:
            await self.cancel(identifier)
        self.entries.pop(identifier, None)
        await asyncio.to_thread(self.store.discard, self.folder(identifier))
        self._count()

    def need(self, *, table: str | None = None, model: str | None = None) -> bool:
        """Return whether an unfinished job needs this table or model."""
        return any(
            job["state"] in WAITING_OR_RUNNING
            and (table == job["table"] or (model is not None and model == job["spec"].get("model")))
            for job in self.entries.values()
        )

    def public(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return a job as callers see it."""
        fields = {name: value for name, value in job.items() if name not in ("spec", "deaths")}
        spec, summary = job["spec"], job["summary"] or {}
        return fields | {
            "label": spec["label"],
            "normal": spec["normal"],
            "parent": None if job["kind"] == "score" else spec.get("model"),
            "scores": summary or None if job["kind"] == "score" else summary.get("scores"),
        }

    # running ----------------------------------------------------------------------------------------------------------

    def start_waiting(self) -> None:
        """Start waiting jobs, as many as may run."""
        for identifier, job in self.entries.items():
            if self.stopping.is_set() or len(self._running) >= self.settings.limits.jobs_running:
                return
            if job["state"] == "waiting" and identifier not in self._running:
                attempt = Attempt(self, job)
                self._running[identifier] = attempt, asyncio.create_task(self._run(attempt))

    async def _run(self, attempt: Attempt) -> None:
        job = attempt.job
        try:
            await attempt.run()
        except Exception as error:
            logger.error("job %s could not be run: %s", job["id"], short_traceback(error))
            self.finish(job, "failed", error=user_message(error) or "The worker could not be started.")
        finally:
            self._running.pop(job["id"], None)
            self.start_waiting()

    async def _stop(self, identifier: str) -> None:
        """Stop the worker of a job, if it has one."""
        if identifier in self._running:
            attempt, task = self._running[identifier]
            await attempt.stop()
            await asyncio.wait([task], timeout=10)

    async def stop(self) -> None:
        """Let running jobs end within the grace time; the others are stopped, and resumed at the next start."""
        self.stopping.set()
        if self._running:
            await asyncio.wait([task for _, task in self._running.values()], timeout=self.settings.grace_seconds)
        for identifier in list(self._running):
            await self._stop(identifier)

    def finish(self, job: dict[str, Any], state: str, **values: Any) -> None:
        """Put a job into a final state, and remove what only an unfinished job needs."""
        self.update(job, state=state, ended=time.time(), **values)
        # not in a thread: who sees the final state must not find half a clean-up
        remove_intermediate_files(self.folder(job["id"]))

    def update(self, job: dict[str, Any], **values: Any) -> None:
        """Change fields of a job, in memory and on the disk."""
        job.update(values)
        folder = self.folder(job["id"])
        try:
            if folder.is_dir():
                write_json(folder / JOB, job)
        except OSError as error:  # the state in memory counts; after a restart the job would be resumed
            logger.error("the state of job %s could not be written: %s", job["id"], short_traceback(error))
        self._count()

    def _count(self) -> None:
        for state in (*WAITING_OR_RUNNING, *FINAL):
            self.metrics.jobs.labels(state).set(sum(job["state"] == state for job in self.entries.values()))
