"""A Ray cluster of two nodes on this machine: throughput, and kills in the middle of scoring, the grid and training.

    python benchmarks/cluster_faults.py [--kills 20] [--rows 20000] [--only throughput,scoring,grid,training]

Every job has to end with the rows of an undisturbed run: each row once, equal in every bit.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))
from faults import NODE, kill_worker, worker_pids

from ptad import PTAD
from ptad.benchmark.cell import Cell
from ptad.benchmark.loading import Dataset
from ptad.benchmark.ray_workers import cluster_executor
from ptad.benchmark.runner import RunSettings, run_grid
from ptad.benchmark.store import ResultStore
from ptad.engines.learning import fit_table
from ptad.engines.local import score_table
from ptad.engines.ray.scoring import score_on_cluster
from ptad.engines.ray.training import cluster_learner
from ptad.tables import read_table, write_table

chance = random.Random(0)
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
        cluster.second = cluster.add_node(**NODE)
        return True

    return act


def make_rows(n: int) -> pa.Table:
    """Eight numbers, a text and a key."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 8))
    x[:, 7] = x[:, 0] - x[:, 1]
    columns = {f"x{i}": x[:, i] for i in range(8)}
    return pa.table({"key": np.arange(n), **columns, "kind": np.array(list("abc"))[rng.integers(0, 3, n)]})


def throughput(folder: Path, rows: int) -> None:
    """Rows per second of the local engine and of one and two workers, in one run."""
    started = time.perf_counter()
    score_table(folder / "model", folder / "rows.parquet", folder / "local.parquet", batch_rows=1000)
    local = time.perf_counter() - started
    say(f"local, one process: {rows / local:,.0f} rows/s")
    for workers in (1, 2):
        marks: list[tuple[float, int]] = []

        def mark(done: int, _: int | None, marks: list[tuple[float, int]] = marks) -> None:
            marks.append((time.perf_counter(), done))

        started = time.perf_counter()
        score_on_cluster(
            folder / "model",
            folder / "rows.parquet",
            folder / f"out{workers}",
            workers=workers,
            batch_rows=1000,
            progress=mark,
        )
        whole = time.perf_counter() - started
        steady = (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
        print(
            f"Ray, {workers} workers: {rows / whole:,.0f} rows/s with start-up ({whole:.1f} s), {steady:,.0f} without"
        )


def scoring(cluster: Any, folder: Path, kills: int) -> None:
    """Kill workers, then nodes, while rows are scored."""
    score_table(folder / "model", folder / "rows.parquet", folder / "local.parquet")
    expected = read_table(folder / "local.parquet")
    for name, act, pause in (("node", killing_node(cluster), 6.0), ("worker", killing_worker("MapWorker"), 4.0)):
        left, jobs, started = kills, 0, time.perf_counter()
        while left > 0:
            jobs += 1
            out = folder / f"{name}{jobs}"
            with Killer(act, left, pause) as killer:
                found = score_on_cluster(folder / "model", folder / "rows.parquet", out, batch_rows=50)
            left -= killer.done
            assert found.rows == expected.num_rows
            assert read_table(out).equals(expected), f"rows differ after {killer.done} kills"
        seconds = time.perf_counter() - started
        say(f"scoring: {kills} kills of a {name} in {jobs} jobs ({seconds:.0f} s): every row once, equal")


def grid(cluster: Any, folder: Path, kills: int) -> None:
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

    expected = figures(run_grid(cells, ResultStore(folder / "local.csv"), load, RunSettings()))
    for name, act in (("worker", killing_worker("_measure")), ("node", killing_node(cluster))):
        store = ResultStore(folder / f"grid-{name}.csv")
        with Killer(act, kills, 8.0) as killer:
            run_grid(cells, store, load, RunSettings(), execute=cluster_executor(None, None))
        found = store.read()
        assert figures(found) == expected and len(found) == len(cells), (found, expected)
        say(f"grid: {killer.done} kills of a {name}: {len(cells)} cells, each once, equal figures")


def training(folder: Path, kills: int) -> None:
    """Kill workers while a model is trained."""
    parameters = {"config": {"n_steps": 300, "interval": 5}, "device": "cpu", "verbose": 0, "drop": ["key"]}
    source = folder / "train.parquet"
    write_table(make_rows(1500), source)
    learn = cluster_learner(folder / "undisturbed", workers=2)
    started = time.perf_counter()
    fit_table(source, folder / "undisturbed", parameters, learn=learn)
    say(f"training: undisturbed in {time.perf_counter() - started:.0f} s")
    home = folder / ".disturbed.ray" / "checkpoint"
    kill = killing_worker("RayTrainWorker")

    def act() -> bool:
        return any(home.glob("members-*")) and kill()

    with Killer(act, kills, 3.0) as killer:
        fit_table(source, folder / "disturbed", parameters, learn=cluster_learner(folder / "disturbed", workers=2))
    new = make_rows(300)
    first, second = (PTAD.load(folder / name).anomaly_score(new) for name in ("undisturbed", "disturbed"))
    same = np.array_equal(first, second)
    say(f"training: {killer.done} kills of a worker: resumed and ended; scores {'equal' if same else 'differ'}")


def main() -> None:
    """Run it all and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", default="throughput,scoring,grid,training")
    options = parser.parse_args()
    logging.getLogger("ptad").setLevel(logging.ERROR)
    import ray
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="ptad-cluster-") as work:
        folder = Path(work)
        write_table(make_rows(options.rows), folder / "rows.parquet")
        detector = PTAD(config={"n_steps": 20}, verbose=0, drop=["key"])
        detector.fit(make_rows(1000)).save(folder / "model")
        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        cluster.second = cluster.add_node(**NODE)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        try:
            if "throughput" in options.only:
                throughput(folder, options.rows)
            if "scoring" in options.only:
                scoring(cluster, folder, options.kills)
            if "grid" in options.only:
                grid(cluster, folder, options.kills)
            if "training" in options.only:
                training(folder, min(3, options.kills))
        finally:
            ray.shutdown()
            cluster.shutdown()


if __name__ == "__main__":
    main()
