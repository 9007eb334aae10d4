"""Kills of the service and of its workers, a part of ``random_kills.py``."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
from command_kills import TRIES_PER_KILL
from moments import Moments

# the paper's preset if torch is installed, since its training takes a while and writes checkpoints
SIZES = {"embedding_dim": 4, "n_heads": 1, "abd_width": 8, "n_steps": 100, "interval": 5, "batch_size": 64}
PAPER = {
    "preset": "paper",
    "config": {
        **{f"network.{name}": value for name, value in SIZES.items()},
        "calibration.folds": 2,
        "calibration.most_folds": 2,
    },
}
TABLE = {"Content-Type": "text/csv"}
WORKER, SERVICE = "ptad.service.jobs.worker", " ptad serve "  # parts of their command lines
FINAL = ("done", "failed", "cancelled")


class Service:
    """A service that can be killed and started again on the same store."""

    def __init__(self, folder: Path, *models: str) -> None:
        self.models = models
        self.folder, self.moments = folder, Moments(folder.with_name(f"moments-{folder.name}"), folder)
        self.begin()

    def begin(self) -> None:
        """Start the service and wait until it is ready."""
        log = self.folder / f"log-{time.time_ns()}"
        command = [sys.executable, "-m", "ptad", "serve", *self.models, "--store", "store", "--port", "0"]
        with log.open("w") as file:
            self.process = subprocess.Popen(command, stderr=file, cwd=self.folder, env=self.moments.environment)
        while "ready:" not in log.read_text():
            if self.process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        self.http = httpx.Client(base_url=re.findall(r"http://\S+", log.read_text())[0], timeout=300)

    def kill(self, stopped: int) -> None:
        """Kill the service and start it again; a stopped worker is continued."""
        self.process.kill()
        self.process.wait()
        if stopped != self.process.pid:
            os.kill(stopped, signal.SIGCONT)
        self.http.close()
        self.begin()

    def start(self, path: str, body: dict[str, Any]) -> str:
        """Start a job and return its identifier."""
        answer = self.http.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def state(self, job: str) -> dict[str, Any]:
        """Return the description of a job."""
        record: dict[str, Any] = self.http.get(f"/v1/jobs/{job}").json()
        return record

    def wait_for(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job and return its description."""
        while (record := self.state(job))["state"] not in FINAL:
            time.sleep(0.05)
        return record

    def has_ended(self, job: str) -> bool:
        """Return whether a job is known to have ended; False if the service is stopped and does not answer."""
        try:
            return self.http.get(f"/v1/jobs/{job}", timeout=1).json()["state"] in FINAL
        except httpx.TimeoutException:
            return False

    def result(self, record: dict[str, Any], rows: bytes) -> bytes:
        """Return the scores of ``rows`` with the model of a fit, the scores of a scoring, or a failed job as text."""
        if record["state"] != "done":
            return repr(record).encode()
        if record["kind"] == "fit":
            return self.http.post(f"/v1/models/{record['model']}/score", content=rows, headers=TABLE).content
        return self.http.get(f"/v1/jobs/{record['id']}/scores", params={"format": "csv"}).content


def kill_service(folder: Path, tally: Any, chance: random.Random, *, worker: bool) -> None:
    """Kill the service, or the worker of a job, in the middle of fits and scorings alternately."""
    service = Service(folder)
    try:
        _kill_alternately(service, tally, chance, worker)
    finally:
        service.process.kill()


def _kill_alternately(service: Service, tally: Any, chance: random.Random, worker: bool) -> None:
    folder = service.folder
    new, rows = (folder / "new.csv").read_bytes(), (folder / "rows.csv").read_bytes()
    tables = [service.http.post("/v1/tables", content=body, headers=TABLE).json()["id"] for body in (new, rows)]
    fit = {"table": tables[0], "drop": ["key"]}
    first = service.wait_for(service.start("/v1/fits", fit))
    requests = [
        ("/v1/fits", fit | (PAPER if find_spec("torch") else {})),
        ("/v1/scorings", {"table": tables[1], "model": first["model"]}),
    ]
    watched = [WORKER] if worker else [WORKER, SERVICE]
    undisturbed = []
    for request in requests:
        job = service.start(*request)
        recorded = {process: service.moments.record(process) for process in watched}
        record = service.wait_for(job)
        service.moments.clear()
        times = {process: read_times() for process, read_times in recorded.items()}
        undisturbed.append((times, service.result(record, new)))
    n_started = [2, 1]  # fits and scorings
    for turn in itertools.islice(itertools.cycle((0, 1)), TRIES_PER_KILL * tally.planned):
        if tally.kills == tally.planned:
            break
        n_started[turn] += 1
        times, expected = undisturbed[turn]
        job = service.start(*requests[turn])
        process = chance.choice([process for process in watched if times[process]])
        service.moments.choose(process, times[process], chance)
        stopped = service.moments.wait(partial(service.has_ended, job))
        if stopped is not None and worker:
            os.kill(stopped, signal.SIGKILL)
        elif stopped is not None:
            service.kill(stopped)
        result = service.result(service.wait_for(job), new)
        if result != expected:
            tally.complain(f"{requests[turn][0]}: {result[:300]!r}")
        if stopped is not None:
            tally.count("after")
    models, jobs = (len(service.http.get(f"/v1/{name}").json()) for name in ("models", "jobs"))
    if (models, jobs) != (n_started[0], sum(n_started)):
        tally.complain(f"{models} models of {n_started[0]} fits, {jobs} jobs of {sum(n_started)}")
    service.process.send_signal(signal.SIGTERM)
    if service.process.wait(60):
        tally.complain(f"the service ended with {service.process.returncode}")
    store = folder / "store"
    left = [p for p in store.rglob("*") if p.name.startswith(".") or p.suffix == ".part" or p.parent == store / "tmp"]
    if left:
        tally.complain(f"left behind: {[str(p.relative_to(store)) for p in left]}")
