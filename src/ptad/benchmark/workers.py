"""A few worker processes that measure cells, each with a time limit; a dead or late worker is replaced."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from ptad.benchmark.cell import Outcome, Task, serve

#: Takes a task lazily, so that its rows are written only when somebody is free to read them. None: skip it.
TaskSource = Callable[[], Task | None]
#: Measures tasks: :func:`run_tasks`, or the same on a cluster.
Executor = Callable[..., None]
_START_LIMIT = 300.0


class _Worker:
    """One process, and what it is doing."""

    def __init__(self, n_threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, child = context.Pipe()
        self.process: BaseProcess = context.Process(target=serve, args=(child, n_threads), daemon=True)
        self.process.start()
        child.close()
        self.ready = False
        self.job: int | None = None
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
    cells_per_worker: int = 25,
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
    exhausted = False
    try:
        while workers and (stop_at is None or time.monotonic() < stop_at):
            for worker in list(workers):
                if not worker.ready or worker.job is not None:
                    continue
                sent = False
                while not exhausted and not sent:
                    number, source = next(pending, (-1, None))
                    if source is None:
                        exhausted = True
                        break
                    task = source()
                    if task is None:
                        continue
                    if worker.n_done >= cells_per_worker:
                        worker = _replace(workers, worker, n_threads)
                        _await_ready(worker)
                    worker.job, sent = number, True
                    worker.deadline = time.monotonic() + time_limit if time_limit else float("inf")
                    worker.connection.send(task)
                if not sent:
                    workers.remove(worker)
                    worker.stop()
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
                worker.process.join(5)
                reason = f"the worker process died (exit code {worker.process.exitcode})"
                number = worker.job
                if number is None:
                    # It died before its first task: the next one would as well.
                    raise RuntimeError(f"A worker process could not start: {reason}.") from None
                _replace(workers, worker, n_threads)
                on_outcome(number, Outcome(error=reason), "failed")
                continue
            if message == "ready":
                worker.ready, worker.deadline = True, float("inf")
                continue
            number, worker.job = worker.job, None
            worker.deadline = float("inf")
            worker.n_done += 1
            if number is not None:
                on_outcome(number, message, "failed" if message.error else "ok")
        elif time.monotonic() >= worker.deadline:
            number = worker.job
            if number is None:
                raise RuntimeError(f"A worker process did not start within {_START_LIMIT:g} s.")
            _replace(workers, worker, n_threads)
            on_outcome(number, Outcome(error=f"longer than the limit of {time_limit:g} s"), "timeout")


def _replace(workers: list[_Worker], worker: _Worker, n_threads: int) -> _Worker:
    worker.stop()
    fresh = _Worker(n_threads)
    workers[workers.index(worker)] = fresh
    return fresh


def _await_ready(worker: _Worker) -> None:
    worker.connection.recv()
    worker.ready, worker.deadline = True, float("inf")
