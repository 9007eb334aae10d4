"""Kill the service and its workers at random moments, and compare what comes out with an undisturbed run.

    python benchmarks/service_faults.py [--kills 20] [--only service,worker]

A fit and a scored table are asked for again and again; each time the service or the worker is killed with SIGKILL at a
random moment, and started again. Nothing may be lost, half-written or different.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from ptad import PTAD
from ptad.tables import write_table

# the paper's preset, since its training takes a while and leaves checkpoints
FIT = {
    "preset": "paper",
    "config": {
        "network.embedding_dim": 4,
        "network.n_heads": 1,
        "network.abd_width": 8,
        "network.n_steps": 400,
        "network.interval": 5,
        "network.batch_size": 64,
        "calibration.folds": 2,
        "calibration.most_folds": 2,
    },
}


class Service:
    """A service that can be killed and started again on the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begin()

    def begin(self) -> None:
        log = self.folder / f"log-{time.time_ns()}"
        command = [
            str(Path(sys.executable).parent / "ptad"),
            "serve",
            "--store",
            str(self.folder / "store"),
            "--port",
            "0",
        ]
        with log.open("w") as file:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(command, stderr=file, env=environment)
        while "ready:" not in log.read_text():
            if self.process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        found = re.search(r"http://\S+", log.read_text())
        assert found is not None
        self.http = httpx.Client(base_url=found.group(0), timeout=120)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.http.close()

    def kill_worker(self) -> bool:
        workers = [
            p
            for p in psutil.Process(self.process.pid).children()
            if "ptad.service.jobs.process" in " ".join(p.cmdline())
        ]
        for worker in workers:
            worker.kill()
        return bool(workers)

    def job(self, path: str, body: dict[str, Any]) -> str:
        answer = self.http.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def ended(self, job: str) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = self.http.get(f"/v1/jobs/{job}").json()
            if found["state"] in ("done", "failed", "cancelled"):
                return found
            time.sleep(0.05)


def make_table() -> pa.Table:
    rng = np.random.default_rng(0)
    a = rng.normal(size=4000)
    return pa.table({"a": a, "b": 2 * a + 0.1 * rng.normal(size=4000), "n": rng.integers(0, 9, 4000)})


def disturbed(
    service: Service, path: str, body: dict[str, Any], what: str, moment: float
) -> tuple[dict[str, Any], bool]:
    """Run a job, kill something after ``moment`` seconds, and wait for its end."""
    job = service.job(path, body)
    time.sleep(moment)
    hit = service.http.get(f"/v1/jobs/{job}").json()["state"] in ("waiting", "running")
    if what == "service":
        service.kill()
        service.begin()
    else:
        hit = service.kill_worker() and hit
    return service.ended(job), hit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="service,worker")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_table(make_table(), folder / "table.csv")
        service = Service(folder)
        upload = (folder / "table.csv").read_bytes()
        table = service.http.post("/v1/tables", content=upload, headers={"Content-Type": "text/csv"}).json()["id"]
        fit = {"table": table, **FIT}
        began = time.monotonic()
        first = service.ended(service.job("/v1/fits", fit))
        fit_seconds = time.monotonic() - began
        rows = make_table().slice(0, 500)
        scores = scores_of(folder, first["model"], rows)
        score = {"table": table, "model": first["model"]}
        began = time.monotonic()
        job = service.ended(service.job("/v1/scorings", score))["id"]
        score_seconds = time.monotonic() - began
        scored = table_scores(service, job)
        print(f"undisturbed: fit {fit_seconds:.1f} s, scoring {score_seconds:.1f} s", flush=True)
        fits, scorings = 1, 1
        for what in options.only.split(","):
            tries, hits, wrong = 0, 0, 0
            while hits < options.kills:  # a kill that came before or after the work does not count
                is_fit = tries % 2 == 0
                tries += 1
                fits, scorings = fits + is_fit, scorings + (not is_fit)
                moment = chance.random() * (fit_seconds if is_fit else score_seconds)
                ended, hit = disturbed(
                    service, "/v1/fits" if is_fit else "/v1/scorings", fit if is_fit else score, what, moment
                )
                same = ended["state"] == "done" and (
                    np.array_equal(scores_of(folder, ended["model"], rows), scores)
                    if is_fit
                    else table_scores(service, ended["id"]) == scored
                )
                hits += hit
                wrong += not same
                if not same:
                    print("DIFFERENT", what, moment, json.dumps(ended), flush=True)
            print(f"kill -9 of the {what}: {tries} times, {hits} of them under way, {wrong} wrong", flush=True)
        models, jobs = (service.http.get(f"/v1/{name}").json() for name in ("models", "jobs"))
        print(f"models {len(models)} of {fits} fits, jobs {len(jobs)} of {fits + scorings}", flush=True)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
        left = [
            str(p.relative_to(folder))
            for p in (folder / "store").rglob("*")
            if p.name.startswith(".") or p.suffix == ".part"
        ]
        left += [p.name for p in (folder / "store" / "tmp").iterdir()]
        print(f"half-written files left: {left or 'none'}")


def scores_of(folder: Path, model: str, rows: pa.Table) -> np.ndarray:
    return PTAD.load(folder / "store" / "models" / model / "bundle", device="cpu").anomaly_score(rows)


def table_scores(service: Service, job: str) -> list[float]:
    blob = service.http.get(f"/v1/jobs/{job}/scores", params={"format": "parquet"}).content
    found: list[float] = pq.read_table(io.BytesIO(blob))["score"].to_pylist()
    return found


if __name__ == "__main__":
    main()
