"""The cells of a grid as tasks of a Ray cluster; the driver alone has the labels and writes the rows.

A task measures its cell as the local workers do, in a process of its own that ends with the time limit. A task whose
worker or machine dies is run again, wherever there is room; that is no failure of the cell, which has its own process
to die in, unless it happens ``MOST_LOSSES`` times.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.measurement import Outcome, Task
from ptad.benchmark.workers import Executor, TaskSource, Worker
from ptad.jobs.ray.connection import connected, worker_share

logger = logging.getLogger(__name__)

#: Workers or machines that a cell may lose before it counts as failed: it may be what kills them.
MOST_LOSSES = 30


def cluster_executor(address: str | None, workers: int | None) -> Executor:
    """Return what :func:`ptad.benchmark.runner.run_grid` hands its tasks to, for a cluster."""
    return partial(run_tasks_on_cluster, address=address, workers=workers)


def run_tasks_on_cluster(
    sources: Iterable[tuple[int, TaskSource]],
    on_outcome: Callable[[int, Outcome, str], None],
    *,
    n_workers: int,
    n_threads: int = 1,
    time_limit: float | None = None,
    cells_per_worker: int = 1,
    stop_at: float | None = None,
    address: str | None = None,
    workers: int | None = None,
) -> None:
    """Measure all tasks on a cluster; see :func:`ptad.benchmark.workers.run_tasks`.

    ``workers`` (by default as many as the cluster has processors) takes the place of ``n_workers``, and every cell has
    a process of its own whatever ``cells_per_worker`` says.
    """
    with connected(address, workers) as ray:
        share, _ = worker_share(ray, workers, "cpu")
        # Ray's own retries know no bound where a task runs out of memory
        remote = ray.remote(max_retries=0, num_cpus=n_threads)(_measure)
        pending: dict[Any, tuple[int, Callable[[], Any], int]] = {}
        rows: dict[Path, Any] = {}
        waiting = iter(sources)
        exhausted = False
        while pending or not exhausted:
            while not exhausted and len(pending) < max(1, share // n_threads):
                number, source = next(waiting, (-1, None))
                if source is None:
                    exhausted = True
                elif (task := source()) is not None:
                    arrays = [_shared(ray, rows, path) for path in (task.train, task.test)]
                    gpus = 1 if task.device.startswith("cuda") else 0
                    submit: Callable[[], Any] = partial(
                        remote.options(num_gpus=gpus).remote, task, *arrays, n_threads, time_limit
                    )
                    pending[submit()] = number, submit, 0
            if not pending:
                continue
            left = None if stop_at is None else max(0.0, stop_at - time.monotonic())
            ready, _ = ray.wait(list(pending), num_returns=1, timeout=left)
            if not ready:  # the budget is spent; what is unfinished is left to the next run
                for reference in pending:
                    ray.cancel(reference, force=True)
                return
            for reference in ready:
                number, submit, losses = pending.pop(reference)
                try:
                    outcome, status = ray.get(reference)
                except ray.exceptions.RayError as error:
                    reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                    of_the_task = isinstance(error, ray.exceptions.RayTaskError)
                    if not of_the_task and losses + 1 < MOST_LOSSES:
                        logger.info("cell %d lost its worker and is run again: %s", number, reason)
                        pending[submit()] = number, submit, losses + 1
                        continue
                    outcome, status = Outcome(error=reason), "failed"
                on_outcome(number, outcome, status)


def _shared(ray: Any, rows: dict[Path, Any], path: Path) -> Any:
    """The rows of a file in the cluster's memory; those of the last few files are kept."""
    if path not in rows:
        while len(rows) >= 8:
            rows.pop(next(iter(rows)))
        rows[path] = ray.put(np.load(path))
    return rows[path]


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
