"""A Ray cluster of two nodes on this machine: throughput, and kills in the middle of scoring, the grid and training.

    python benchmarks/cluster_faults.py [--kills 20] [--rows 20000] [--only throughput,scoring,grid,training]
                                        [--what worker,node]

Every job has to end with the rows of an undisturbed run: each row once, equal in every bit.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))
from faults import NODE, kill_worker, worker_pids

from ptad import PTAD
from ptad.benchmark.loading import Dataset
from ptad.benchmark.plan import Cell, RunSettings
from ptad.benchmark.ray_workers import cluster_executor
from ptad.benchmark.runner import run_grid
from ptad.benchmark.store import ResultStore
from ptad.jobs.fit import fit_table
from ptad.jobs.ray.scoring import score_on_cluster
from ptad.jobs.ray.training import cluster_learner
from ptad.jobs.score import score_table
from ptad.tables import read_table, write_table

chance = random.Random(0)
STARTER = ThreadPoolExecutor(1)  # a node dies with the thread that started it: this one stays
UNIT = 4096  # rows of a batch, and of a unit of the cluster, where speed is measured
say = partial(print, flush=True)


class Killer(threading.Thread):
    """Acts again and again at random moments while a job runs, as long as there is something to act on."""

    def __init__(self, act: Callable[[], bool], kills: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.act, self.left, self.pause = act, kills, pause
        self.done = 0
        self.over = threading.Event()

    def run(self) -> None:
        while self.left and not self.over.wait(chance.uniform(0.2, 2.0) * self.pause):
            if self.act():
                self.done, self.left = self.done + 1, self.left - 1

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def killing_worker(name: str) -> Callable[[], bool]:
    """Kill a worker of this name, if there is one."""

    def act() -> bool:
        if not worker_pids(name):
            return False
        kill_worker(name)
        return True

    return act


def killing_node(cluster: Any) -> Callable[[], bool]:
    """Kill the second node and start another one."""
    import ray._private.utils

    # starting a node sets a signal handler, which Python allows in the main thread only
    ray._private.utils.set_sigterm_handler = lambda handler: None

    def act() -> bool:
        cluster.remove_node(cluster.second, allow_graceful=False)
        cluster.second = STARTER.submit(cluster.add_node, **NODE).result()
        return True

    return act


def make_rows(n: int) -> pa.Table:
    """Eight numbers, a text and a key."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 8))
    x[:, 7] = x[:, 0] - x[:, 1]
    columns = {f"x{i}": x[:, i] for i in range(8)}
    return pa.table({"key": np.arange(n), **columns, "kind": np.array(list("abc"))[rng.integers(0, 3, n)]})


def alone(folder: Path, rows: int) -> None:
    """Rows per second of one process of this machine, and of the service, before there is a cluster."""
    started = time.perf_counter()
    score_table(folder / "larger", folder / "rows.parquet", folder / "local.parquet", batch_rows=UNIT)
    taken = time.perf_counter() - started
    say(f"local, one process: {rows / taken:,.0f} rows/s ({taken:.1f} s)")
    program = str(Path(sys.executable).parent / "ptad")
    command = [program, "serve", str(folder / "larger"), "--store", str(folder / "store"), "--port", "0"]
    log = folder / "service.log"
    with log.open("w") as file:
        service = subprocess.Popen(command, stderr=file)
    try:
        while "ready:" not in log.read_text():
            time.sleep(0.1)
        url = re.search(r"http://\S+", log.read_text())[0] + "/v1/models/larger/score"  # type: ignore[index]
        body = (folder / "rows.parquet").read_bytes()
        kind = {"Content-Type": "application/vnd.apache.parquet"}
        started = time.perf_counter()
        request = urllib.request.Request(url, body, kind)
        with urllib.request.urlopen(request) as answer:
            content = answer.read()
        taken = time.perf_counter() - started
    finally:
        service.terminate()
        service.wait(60)
    scores = pq.read_table(io.BytesIO(content))["score"]
    assert scores.equals(read_table(folder / "local.parquet")["score"])
    say(f"service, one upload: {rows / taken:,.0f} rows/s ({taken:.1f} s), the scores of the local engine")


def throughput(folder: Path, rows: int) -> None:
    """Rows per second of one and two workers of the cluster."""
    for workers in (1, 2):
        marks: list[tuple[float, int]] = []

        def mark(done: int, _: int | None, marks: list[tuple[float, int]] = marks) -> None:
            marks.append((time.perf_counter(), done))

        started = time.perf_counter()
        score_on_cluster(
            folder / "larger",
            folder / "rows.parquet",
            folder / f"out{workers}",
            workers=workers,
            batch_rows=UNIT,
            progress=mark,
        )
        whole = time.perf_counter() - started
        assert read_table(folder / f"out{workers}").equals(read_table(folder / "local.parquet"))
        steady = (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
        say(f"Ray, {workers} workers: {rows / whole:,.0f} rows/s with start-up ({whole:.1f} s), {steady:,.0f} without")


def scoring(cluster: Any, folder: Path, kills: int, what: str) -> None:
    """Kill workers, then nodes, while rows are scored."""
    score_table(folder / "model", folder / "rows.parquet", folder / "local.parquet")
    expected = read_table(folder / "local.parquet")
    for name, act, pause in (("node", killing_node(cluster), 6.0), ("worker", killing_worker("MapWorker"), 4.0)):
        left, jobs, started = kills if name in what else 0, 0, time.perf_counter()
        while left > 0:
            jobs += 1
            out = folder / f"{name}{jobs}"
            with Killer(act, left, pause) as killer:
                found = score_on_cluster(folder / "model", folder / "rows.parquet", out, batch_rows=50)
            left -= killer.done
            assert found.rows == expected.num_rows
            assert read_table(out).equals(expected), f"rows differ after {killer.done} kills"
        if not jobs:
            continue
        seconds = time.perf_counter() - started
        say(f"scoring: {kills} kills of a {name} in {jobs} jobs ({seconds:.0f} s): every row once, equal")


def grid(cluster: Any, folder: Path, kills: int, what: str) -> None:
    """Kill workers and nodes while cells are measured."""

    def load(name: str, seed: int) -> Dataset:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4)).astype(np.float32)
        y = np.arange(300) >= 250
        X[y] += 1.0
        return Dataset(name, X, y)

    cells = [Cell(method, "toy", seed, "minmax") for method in ("pca", "knn") for seed in range(4)]

    def figures(found: list[dict[str, Any]]) -> dict[Any, Any]:
        return {(r["method"], r["seed"]): (r["status"], r["auc_roc"], r["auc_pr"]) for r in found}

    undisturbed = ResultStore(folder / "local.csv")
    run_grid(cells, undisturbed, load, RunSettings())
    expected = figures(undisturbed.read())  # as written: the file keeps six digits
    node = killing_node(cluster)

    def act_on_node() -> bool:
        return bool(worker_pids("_measure")) and node()

    for name, act in (("worker", killing_worker("_measure")), ("node", act_on_node)):
        left, jobs, started = kills if name in what else 0, 0, time.perf_counter()
        while left > 0:
            jobs += 1
            store = ResultStore(folder / f"grid-{name}{jobs}.csv")
            with Killer(act, left, 8.0) as killer:
                run_grid(cells, store, load, RunSettings(), execute=cluster_executor(None, None))
            left -= killer.done
            lines = len(store.path.read_text().splitlines()) - 1
            found = store.read()
            assert figures(found) == expected and lines == len(cells), (found, expected)
        if not jobs:
            continue
        seconds = time.perf_counter() - started
        say(
            f"grid: {kills} kills of a {name} in {jobs} grids of {len(cells)} cells ({seconds:.0f} s): "
            "each cell once, equal figures"
        )


def training(cluster: Any, folder: Path, kills: int, what: str) -> None:
    """Kill workers, then nodes, while a model is trained."""
    parameters = {"config": {"n_steps": 1500, "interval": 5}, "device": "cpu", "verbose": 0, "drop": ["key"]}
    source = folder / "train.parquet"
    write_table(make_rows(1500), source)
    learn = cluster_learner(folder / "undisturbed", workers=2)
    started = time.perf_counter()
    fit_table(source, folder / "undisturbed", parameters, learn=learn)
    say(f"training: undisturbed in {time.perf_counter() - started:.0f} s")
    new = make_rows(300)
    expected = PTAD.load(folder / "undisturbed").anomaly_score(new)
    for name, kill in (("worker", killing_worker("RayTrainWorker")), ("node", killing_node(cluster))):
        left, jobs, started = kills if name in what else 0, 0, time.perf_counter()
        while left > 0:
            jobs += 1
            out = folder / f"disturbed-{name}{jobs}"
            home = out.with_name(f".{out.name}.ray") / "checkpoint"

            def act(home: Path = home, kill: Callable[[], bool] = kill) -> bool:
                return any(home.glob("members-*")) and bool(worker_pids("RayTrainWorker")) and kill()

            with Killer(act, left, 15.0) as killer:
                fit_table(source, out, parameters, learn=cluster_learner(out, workers=2))
            left -= killer.done
            say(f"  {killer.done} kills, {time.perf_counter() - started:.0f} s")
            assert np.array_equal(PTAD.load(out).anomaly_score(new), expected), "scores differ"
        if not jobs:
            continue
        seconds = time.perf_counter() - started
        say(
            f"training: {kills} kills of a {name} in {jobs} fits ({seconds:.0f} s): resumed and ended each time, "
            "scores equal"
        )


def main() -> None:
    """Run it all and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", default="throughput,scoring,grid,training")
    parser.add_argument("--what", default="worker,node")
    options = parser.parse_args()
    logging.getLogger("ptad").setLevel(logging.ERROR)
    import ray
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="ptad-cluster-") as work:
        folder = Path(work)
        write_table(make_rows(options.rows), folder / "rows.parquet")
        detector = PTAD(config={"n_steps": 20}, verbose=0, drop=["key"])
        detector.fit(make_rows(1000)).save(folder / "model")
        PTAD(config={"n_steps": 20}, verbose=0, drop=["key"]).fit(make_rows(2500)).save(folder / "larger")
        if "throughput" in options.only:
            alone(folder, options.rows)
        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        cluster.second = cluster.add_node(**NODE)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        try:
            if "throughput" in options.only:
                throughput(folder, options.rows)
            if "scoring" in options.only:
                scoring(cluster, folder, options.kills, options.what)
            if "grid" in options.only:
                grid(cluster, folder, options.kills, options.what)
            if "training" in options.only:
                training(cluster, folder, options.kills, options.what)
        finally:
            ray.shutdown()
            cluster.shutdown()


if __name__ == "__main__":
    main()
