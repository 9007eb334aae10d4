"""A few worker processes that measure cells, each with a time limit; a dead or late worker is replaced.

A worker that dies may have been killed by something that has nothing to do with its cell: the cell is tried again, and
fails when it has lost ``MOST_TRIES`` workers.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from ptad.benchmark.measurement import Outcome, Task, serve

#: Takes a task lazily, so that its rows are written only when somebody is free to read them. None: skip it.
TaskSource = Callable[[], Task | None]
#: Measures tasks: :func:`run_tasks`, or the same on a cluster.
Executor = Callable[..., None]
_START_LIMIT = 300.0
#: How many threads linear algebra has is read from these when a process first loads it.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Workers that a cell may lose, or that may die one after the other before they had a cell.
MOST_TRIES = 3


class _Worker:
    """One process, what it is to do next, and what it is doing."""

    def __init__(self, n_threads: int, given: tuple[int, Task] | None = None, tries: int = 0) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, child = context.Pipe()
        self.process: BaseProcess = context.Process(target=serve, args=(child,), daemon=True)
        with _environment(dict.fromkeys(_THREAD_VARIABLES, str(n_threads))):
            self.process.start()
        child.close()
        self.ready = False
        self.given = given
        self.tries = tries  # workers that died before this one with the same to do
        self.job: tuple[int, Task] | None = None
        self.deadline = time.monotonic() + _START_LIMIT
        self.n_done = 0

    def stop(self) -> None:
        """End this process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_tasks(
    sources: Iterable[tuple[int, TaskSource]],
    on_outcome: Callable[[int, Outcome, str], None],
    *,
    n_workers: int,
    n_threads: int = 1,
    time_limit: float | None = None,
    cells_per_worker: int = 500,
    stop_at: float | None = None,
) -> None:
    """Measure all tasks; report each as it ends.

    Parameters
    ----------
    sources : iterable of (number, callable)
        The callable makes the task when a worker is free.
    on_outcome : callable
        ``(number, outcome, status)`` with status ``ok``, ``failed`` or ``timeout``.
    n_workers, n_threads : int
        Processes, and threads in each.
    time_limit : float, optional
        Seconds per cell, start-up of the process not counted.
    cells_per_worker : int
        A worker is replaced after this many cells; 1 gives every cell a fresh process.
    stop_at : float, optional
        Moment of ``time.monotonic`` at which everything ends; cells under way are given up without an outcome.
    """
    pending = iter(sources)
    workers = [_Worker(n_threads) for _ in range(n_workers)]
    try:
        while workers and (stop_at is None or time.monotonic() < stop_at):
            for worker in list(workers):
                if not worker.ready or worker.job is not None:
                    continue
                if worker.given is None:
                    worker.given, worker.tries = _next_task(pending), 0
                    if worker.given is not None and worker.n_done >= cells_per_worker:
                        _replace(workers, worker, n_threads, worker.given)
                        continue
                if worker.given is None:
                    workers.remove(worker)
                    worker.stop()
                    continue
                worker.job, worker.given = worker.given, None
                worker.deadline = time.monotonic() + time_limit if time_limit else float("inf")
                with suppress(OSError):  # it has died, which is found below
                    worker.connection.send(worker.job[1])
            _collect(workers, on_outcome, n_threads, time_limit, stop_at)
    finally:
        for worker in workers:
            worker.stop()


def _collect(
    workers: list[_Worker],
    on_outcome: Callable[[int, Outcome, str], None],
    n_threads: int,
    time_limit: float | None,
    stop_at: float | None,
) -> None:
    """Wait for the next message or the next deadline, and deal with it."""
    if not workers:
        return
    left = min((worker.deadline for worker in workers), default=float("inf"))
    left = min(left, float("inf") if stop_at is None else stop_at) - time.monotonic()
    ready = wait([worker.connection for worker in workers], timeout=max(0.0, min(left, 3600.0)))
    for worker in list(workers):
        if worker.connection in ready:
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                _bury(workers, worker, on_outcome, n_threads)
                continue
            if message == "ready":
                worker.ready, worker.deadline = True, float("inf")
                continue
            job, worker.job = worker.job, None
            worker.deadline = float("inf")
            worker.n_done += 1
            if job is not None:
                on_outcome(job[0], message, "failed" if message.error else "ok")
        elif time.monotonic() >= worker.deadline:
            job = worker.job
            if job is None:
                raise RuntimeError(f"A worker process did not start within {_START_LIMIT:g} s.")
            _replace(workers, worker, n_threads)
            on_outcome(job[0], Outcome(error=f"longer than the limit of {time_limit:g} s"), "timeout")


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Change variables for a process that is started meanwhile."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _next_task(pending: Iterator[tuple[int, TaskSource]]) -> tuple[int, Task] | None:
    """The next task that is not skipped, or None when there are no more."""
    for number, source in pending:
        if (task := source()) is not None:
            return number, task
    return None


def _bury(
    workers: list[_Worker], worker: _Worker, on_outcome: Callable[[int, Outcome, str], None], n_threads: int
) -> None:
    """Put another worker in the place of one that died, with the same to do unless that has cost too many."""
    worker.process.join(5)
    reason = f"the worker process died (exit code {worker.process.exitcode})"
    tries = worker.tries + 1
    if tries < MOST_TRIES:
        _replace(workers, worker, n_threads, worker.job or worker.given, tries)
        return
    if worker.job is None:
        raise RuntimeError(f"A worker process could not start: {reason}, {tries} times.")
    _replace(workers, worker, n_threads)
    on_outcome(worker.job[0], Outcome(error=f"{reason}, {tries} times"), "failed")


def _replace(
    workers: list[_Worker], worker: _Worker, n_threads: int, given: tuple[int, Task] | None = None, tries: int = 0
) -> None:
    worker.stop()
    workers[workers.index(worker)] = _Worker(n_threads, given, tries)
