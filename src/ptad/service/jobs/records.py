"""The jobs of the service: making a model and scoring a table, each in a process of its own, its state on disk.

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

from ptad.files import read_json, write_json
from ptad.service.jobs.attempt import FINAL, Attempt, tidy
from ptad.service.metrics import Metrics
from ptad.service.models import Models
from ptad.service.problems import Problem
from ptad.service.reasons import reason_of, traced
from ptad.service.settings import ServiceSettings
from ptad.service.store import Store, check_room, new_id
from ptad.service.uploads import Uploads

logger = logging.getLogger("ptad.service")

JOB = "job.json"
OPEN = ("waiting", "running")


class Jobs:
    """The queue of jobs and the processes that work on them."""

    def __init__(
        self, store: Store, settings: ServiceSettings, models: Models, uploads: Uploads, metrics: Metrics
    ) -> None:
        self.store, self.settings, self.metrics = store, settings, metrics
        self.models, self.uploads = models, uploads
        self.entries: dict[str, dict[str, Any]] = {}
        self.stopping = asyncio.Event()
        self.news = asyncio.Event()  # set when some job may have news: who takes it before looking misses nothing
        self._running: dict[str, tuple[Attempt, asyncio.Task[None]]] = {}
        for folder in sorted(store.jobs.iterdir()):
            job = read_json(folder / JOB)
            if not isinstance(job, dict):
                store.discard(folder)
                continue
            self.entries[folder.name] = job
            if job["state"] == "running":
                logger.info("job %s was under way when the service stopped: it goes on", folder.name)
                self.change(job, state="waiting")
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
            "model": spec["model"] if kind == "score" else new_id("m"),
            "error": None,
            "summary": None,
            "spec": spec,
        }
        check_room(self.store.root, self.settings.limits.disk_reserve)
        with self.store.staged(self.folder(identifier)) as staging:
            write_json(staging / JOB, job)
        self.entries[identifier] = job
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
        self.end(job, "cancelled")
        await self._stop(identifier)
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

    # running ------------------------------------------------------------------------------------------------------

    def start_waiting(self) -> None:
        """Start jobs as long as there is room."""
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
            logger.error("job %s could not be run: %s", job["id"], traced(error))
            self.end(job, "failed", error=reason_of(error) or "The worker could not be started.")
        finally:
            if job["state"] in FINAL:
                await asyncio.to_thread(tidy, attempt.folder)
            self._running.pop(job["id"], None)
            self.tell()
            self.start_waiting()

    async def _stop(self, identifier: str) -> None:
        """Stop the work on a job, if there is any."""
        if identifier in self._running:
            attempt, task = self._running[identifier]
            await attempt.stop()
            await asyncio.wait([task], timeout=10)

    async def stop(self) -> None:
        """Let running jobs end within the grace; what is left stops and goes on at the next start."""
        self.request_stop()
        if self._running:
            await asyncio.wait([task for _, task in self._running.values()], timeout=self.settings.grace_seconds)
        for identifier in list(self._running):
            await self._stop(identifier)

    def end(self, job: dict[str, Any], state: str, **values: Any) -> None:
        """Let a job be in a final state."""
        self.change(job, state=state, ended=time.time(), **values)

    def change(self, job: dict[str, Any], **values: Any) -> None:
        """Change the state of a job, also on the disk."""
        job.update(values)
        folder = self.folder(job["id"])
        try:
            if folder.is_dir():
                write_json(folder / JOB, job)
        except OSError as error:  # what is in memory counts; a service that starts again would let the job go on
            logger.error("the state of job %s could not be written: %s", job["id"], traced(error))
        self._count()
        self.tell()

    def request_stop(self) -> None:
        """Start no more jobs, and end the streams of events."""
        self.stopping.set()
        self.tell()

    def tell(self) -> None:
        """Let whoever follows a job look at it again."""
        news, self.news = self.news, asyncio.Event()
        news.set()

    def _count(self) -> None:
        for state in (*OPEN, *FINAL):
            self.metrics.jobs.labels(state).set(sum(job["state"] == state for job in self.entries.values()))
