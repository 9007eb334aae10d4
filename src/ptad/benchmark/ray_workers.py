"""The cells of a grid as tasks of a Ray cluster; the driver alone has the labels and writes the rows.

A task measures its cell as the local workers do, in a process of its own that ends with the time limit. A task whose
worker or machine dies is run again, wherever there is room; that is no failure of the cell, which has its own process
to die in, unless it happens ``MOST_LOSSES`` times.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.measurement import Outcome, Task
from ptad.benchmark.workers import Executor, Worker, run_tasks
from ptad.jobs.ray.connection import connected, worker_share

logger = logging.getLogger(__name__)

#: Workers or machines that a cell may lose before it counts as failed: it may be what kills them.
MOST_LOSSES = 30


def cluster_executor(address: str | None, workers: int | None) -> Executor:
    """Return what :func:`ptad.benchmark.runner.run_grid` hands its tasks to, for a cluster.

    It has as many cells under way as ``workers`` says (by default as the cluster has processors).
    """

    def execute(*tasks: Any, n_workers: int, n_threads: int, **limits: Any) -> None:
        with connected(address, workers) as ray:
            share, _ = worker_share(ray, workers, "cpu")
            # the rows of the last few files stay in the cluster's memory
            shared = lru_cache(maxsize=8)(lambda path: ray.put(np.load(path)))
            make_worker, n_cells = partial(ClusterWorker, ray, shared), max(1, share // n_threads)
            run_tasks(*tasks, n_workers=n_cells, n_threads=n_threads, make_worker=make_worker, **limits)

    return execute


class ClusterWorker(Worker):
    """Measures tasks one after the other, wherever the cluster has room; every cell has a fresh process."""

    def __init__(self, ray: Any, shared: Callable[[Path], Any], n_threads: int) -> None:
        super().__init__(n_threads)
        self._ray, self._shared = ray, shared
        self._reference: Any = None

    def measure(
        self, task: Task, time_limit: float | None = None, stop_at: float | None = None
    ) -> tuple[Outcome, str] | None:
        """Return the outcome and its status (ok, failed or timeout); None if ``stop_at`` came first."""
        ray, reason = self._ray, ""
        rows = [self._shared(path) for path in (task.train, task.test)]
        gpus = 1 if task.device.startswith("cuda") else 0
        # Ray's own retries know no bound where a task runs out of memory
        remote = ray.remote(max_retries=0, num_cpus=self.n_threads, num_gpus=gpus)(_measure)
        for _ in range(MOST_LOSSES):
            self._reference = remote.remote(task, *rows, self.n_threads, time_limit)
            left = None if stop_at is None else max(0.0, stop_at - time.monotonic())
            if self._closed or not ray.wait([self._reference], timeout=left)[0]:
                self.close()
                return None
            try:
                outcome, status = ray.get(self._reference)
            except ray.exceptions.RayError as error:
                if self._closed:
                    return None
                reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                if isinstance(error, ray.exceptions.RayTaskError):
                    break
                logger.info("a cell of %s lost its worker and is run again: %s", task.method, reason)
            else:
                return outcome, status
        return Outcome(error=reason), "failed"

    def close(self) -> None:
        """Give up what is under way."""
        self._closed = True
        if self._reference is not None:
            self._ray.cancel(self._reference, force=True)


def _measure(
    task: Task,
    train: npt.NDArray[np.float32],
    test: npt.NDArray[np.float32],
    n_threads: int,
    time_limit: float | None,
) -> tuple[Outcome, str]:
    """Measure one cell on the machine where this runs."""
    with tempfile.TemporaryDirectory(prefix="ptad-cell-") as folder:
        local = replace(task, train=Path(folder, "train.npy"), test=Path(folder, "test.npy"))
        np.save(local.train, train)
        np.save(local.test, test)
        worker = Worker(n_threads)
        try:
            found = worker.measure(local, time_limit)
        finally:
            worker.stop()
    assert found is not None  # nobody stops it
    return found
