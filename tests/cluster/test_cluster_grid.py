"""The benchmark's grid as tasks: the rows of a local run, whatever is killed in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptad.benchmark.loading import Dataset
from ptad.benchmark.plan import Cell, RunSettings
from ptad.benchmark.ray_workers import cluster_executor
from ptad.benchmark.results import ResultsFile
from ptad.benchmark.runner import run_grid

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def load(name: str, seed: int) -> Dataset:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = np.arange(60) >= 50
    X[y] += 2.0
    return Dataset(name, X, y)


def test_a_killed_worker_costs_no_cell(cluster: Any, tmp_path: Path) -> None:
    cells = [Cell("pca", "toy", seed, "minmax") for seed in range(2)]
    cells.append(Cell("lof", "toy", 0, "standard", {"metric": "no-such-metric"}))
    local = run_grid(cells, ResultsFile(tmp_path / "local.csv"), load, RunSettings())
    store = ResultsFile(tmp_path / "ray.csv")
    stop = cluster.stops.add("*/ptad-cell-*/test.npy", events=("open",))  # a worker that is about to measure
    rows = run_grid(cells, store, load, RunSettings(), execute=cluster_executor(None, None))
    assert stop.pid is not None
    assert len(store.read()) == len(rows) == 3

    def figures(found: list[dict[str, Any]]) -> dict[Any, Any]:
        return {(r["method"], r["seed"]): (r["status"], r.get("auc_roc"), r["reason"][:40]) for r in found}

    assert figures(rows) == figures(local)
    assert {r["status"] for r in rows} == {"ok", "failed"}
