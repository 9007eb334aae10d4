"""Kills of the service and of its workers, a part of ``random_kills.py``."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil

# the paper's preset where it can be fitted, since its training takes a while and leaves checkpoints
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


class Service:
    """A service that can be killed and started again on the same store."""

    def __init__(self, folder: Path, *models: str) -> None:
        self.folder, self.models = folder, models
        self.begin()

    def begin(self) -> None:
        """Start and wait until it is ready."""
        log = self.folder / f"log-{time.time_ns()}"
        command = [sys.executable, "-m", "ptad", "serve", *self.models, "--store", "store", "--port", "0"]
        with log.open("w") as file:
            self.process = subprocess.Popen(command, stderr=file, cwd=self.folder)
        while "ready:" not in log.read_text():
            if self.process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        self.http = httpx.Client(base_url=re.findall(r"http://\S+", log.read_text())[0], timeout=300)

    def kill(self) -> None:
        """Kill the service and start it again."""
        self.process.kill()
        self.process.wait()
        self.http.close()
        self.begin()

    def kill_worker(self, job: str) -> bool:
        """Kill the process that works on a job, whose folder its command line names; whether there was one."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        workers = [child for child in children if job in " ".join(child.cmdline())]
        for worker in workers:
            worker.kill()
        return bool(workers)

    def start(self, path: str, body: dict[str, Any]) -> str:
        """Start a job and return its identifier."""
        answer = self.http.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def state(self, job: str) -> dict[str, Any]:
        """A job as the service describes it."""
        found: dict[str, Any] = self.http.get(f"/v1/jobs/{job}").json()
        return found

    def ended(self, job: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        while (found := self.state(job))["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.05)
        return found

    def result(self, ended: dict[str, Any], rows: bytes) -> bytes:
        """Scores of rows with the model of a fit, or those of a scoring; a job that is not done describes itself."""
        if ended["state"] != "done":
            return repr(ended).encode()
        if ended["kind"] == "fit":
            return self.http.post(f"/v1/models/{ended['model']}/score", content=rows, headers=TABLE).content
        return self.http.get(f"/v1/jobs/{ended['id']}/scores", params={"format": "csv"}).content


def kill_service(folder: Path, tally: Any, chance: random.Random, *, worker: bool) -> None:
    """Kill the service, or the worker of a job, in the middle of fits and scorings by turns."""
    service = Service(folder)
    new, rows = (folder / "new.csv").read_bytes(), (folder / "rows.csv").read_bytes()
    tables = [service.http.post("/v1/tables", content=body, headers=TABLE).json()["id"] for body in (new, rows)]
    plain = {"table": tables[0], "drop": ["key"]}
    first = service.ended(service.start("/v1/fits", plain))
    requests = [
        ("/v1/fits", plain | (PAPER if find_spec("torch") else {})),
        ("/v1/scorings", {"table": tables[1], "model": first["model"]}),
    ]
    undisturbed = []
    for request in requests:
        started = time.perf_counter()
        ended = service.ended(service.start(*request))
        undisturbed.append((time.perf_counter() - started, service.result(ended, new)))
    asked = [2, 1]
    while tally.kills < tally.wanted:
        turn = sum(asked) % 2
        asked[turn] += 1
        seconds, expected = undisturbed[turn]
        job = service.start(*requests[turn])
        time.sleep(seconds * chance.random())
        hit = service.state(job)["state"] in ("waiting", "running")
        if worker:
            hit = service.kill_worker(job) and hit
        else:
            service.kill()
        found = service.result(service.ended(job), new)
        if found != expected:
            tally.complain(f"{requests[turn][0]}: {found[:300]!r}")
        if hit:  # otherwise it came before or after the work
            tally.count("after")
    models, jobs = (len(service.http.get(f"/v1/{name}").json()) for name in ("models", "jobs"))
    if (models, jobs) != (asked[0], sum(asked)):
        tally.complain(f"{models} models of {asked[0]} fits, {jobs} jobs of {sum(asked)}")
    service.process.send_signal(signal.SIGTERM)
    if service.process.wait(60):
        tally.complain(f"the service ended with {service.process.returncode}")
    store = folder / "store"
    left = [p for p in store.rglob("*") if p.name.startswith(".") or p.suffix == ".part" or p.parent == store / "tmp"]
    if left:
        tally.complain(f"left behind: {[str(p.relative_to(store)) for p in left]}")
