"""A real cluster of two nodes on this machine, a table in several files, and a model of it."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from faults import NODE

from ptad import PTAD
from ptad.tables import write_table
from stopping import Stops

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
pytest.importorskip("ray", reason="the extra 'ray' is not installed")


def make_rows(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    return pa.table({"key": np.arange(n), "a": a, "b": 2 * a + rng.normal(size=n) * 0.1, "colour": colour})


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and 1,000 rows as three Parquet files and as two CSV files."""
    path = tmp_path_factory.mktemp("cluster")
    rows = make_rows(1000)
    PTAD(verbose=0, device="cpu", drop=["key"]).fit(rows.slice(0, 200)).save(path / "model")
    for name, start, stop in (("1", 0, 130), ("2", 130, 131), ("3", 131, 1000)):
        (path / "parquet").mkdir(exist_ok=True)
        write_table(rows.slice(start, stop - start), path / "parquet" / f"{name}.parquet")
    (path / "csv").mkdir()
    for name, start, stop in (("1", 0, 700), ("2", 700, 1000)):
        write_table(rows.slice(start, stop - start), path / "csv" / f"{name}.csv")
    return path


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes with one processor each, whose processes have ``stops``; this process is connected to the first."""
    stops = Stops(tmp_path_factory.mktemp("stops"))
    # on a busy machine nodes may start slowly, and memory that others fill is no reason to kill a worker
    patience = {"RAY_raylet_start_wait_time_s": "300", "RAY_memory_monitor_refresh_ms": "0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**stops.environment, **patience}.items():
            patch.setenv(name, value)
        yield from _cluster(stops)


def _cluster(stops: Stops) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        found.stops = stops
        found.second = found.add_node(**NODE)
        ray.init(address=found.address, log_to_driver=False, logging_level=logging.ERROR)
    yield found
    ray.shutdown()
    found.shutdown()
