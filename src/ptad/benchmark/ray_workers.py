"""Cells of a grid as tasks of a Ray cluster; only the driver has the labels and writes the rows.

A task measures its cell as the local workers do, in a process of its own that ends with the time limit. A task whose
worker or machine dies runs again elsewhere. The cell itself can only kill its own process, so it counts as failed only
after ``MAX_LOSSES`` lost tasks.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ptad.benchmark.measurement import Outcome, Task
from ptad.benchmark.workers import Executor, Worker, run_tasks
from ptad.jobs.ray.connection import connected, worker_share

logger = logging.getLogger(__name__)

#: Workers or machines that a cell may lose before it counts as failed.
MAX_LOSSES = 30


def cluster_executor(address: str | None, workers: int | None) -> Executor:
    """Return an executor for :func:`ptad.benchmark.runner.run_grid` that runs tasks on a cluster.

    It runs ``workers`` cells at once, by default as many as the cluster has processors.
    """

    def execute(*tasks: Any, n_workers: int, **limits: Any) -> None:
        with connected(address, workers) as ray:
            n_cells, _ = worker_share(ray, workers, "cpu")
            # the rows of the last few files stay in the cluster's memory
            shared = lru_cache(maxsize=8)(lambda path: ray.put(np.load(path)))
            run_tasks(*tasks, n_workers=n_cells, make_worker=partial(ClusterWorker, ray, shared), **limits)

    return execute


class ClusterWorker(Worker):
    """Measures tasks one after the other, wherever the cluster has room; every cell has a process of its own."""

    def __init__(self, ray: Any, shared: Callable[[Path], Any]) -> None:
        super().__init__()
        self._ray, self._shared = ray, shared
        self._reference: Any = None

    def measure(self, task: Task, time_limit: float | None = None) -> Outcome | None:
        """Return the outcome of a task; None if the worker was closed meanwhile."""
        ray, reason = self._ray, ""
        rows = [self._shared(path) for path in (task.train, task.test)]
        # Without Ray's own retries, which are unlimited for a task that runs out of memory.
        remote = ray.remote(max_retries=0, num_cpus=1, num_gpus=int(task.device.startswith("cuda")))(_measure)
        for _ in range(MAX_LOSSES):
            if self._closed:
                return None
            self._reference = remote.remote(task, *rows, time_limit)
            try:
                return cast("Outcome", ray.get(self._reference))
            except ray.exceptions.RayError as error:
                reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                if isinstance(error, ray.exceptions.RayTaskError):
                    break
                logger.info("a cell of %s lost its worker and is run again: %s", task.method, reason)
        return None if self._closed else Outcome("failed", reason)

    def close(self) -> None:
        """Cancel the running task."""
        self._closed = True
        if self._reference is not None:
            self._ray.cancel(self._reference, force=True)


def _measure(
    task: Task, train: npt.NDArray[np.float32], test: npt.NDArray[np.float32], time_limit: float | None
) -> Outcome:
    """Measure one cell on the machine where this runs."""
    with tempfile.TemporaryDirectory(prefix="ptad-cell-") as folder:
        local = replace(task, train=Path(folder, "train.npy"), test=Path(folder, "test.npy"))
        np.save(local.train, train)
        np.save(local.test, test)
        worker = Worker()
        try:
            outcome = worker.measure(local, time_limit)
        finally:
            worker.stop()
    assert outcome is not None  # only this function could close the worker
    return outcome
