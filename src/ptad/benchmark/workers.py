"""Worker processes that measure cells, each with a time limit; a dead or late one is replaced.

A worker that dies may have been killed by something that has nothing to do with its cell: the cell is tried again, and
fails when it has lost ``MOST_TRIES`` workers.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess

from ptad.benchmark.measurement import Outcome, Task, measure

#: Takes a task lazily, so that its rows are written only when somebody is free to read them. None: skip it.
TaskSource = Callable[[], Task | None]
#: Measures tasks: :func:`run_tasks`, or the same on a cluster.
Executor = Callable[..., None]
_START_LIMIT = 300.0
#: How many threads linear algebra has is read from these when a process first loads it.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Workers that a cell may lose, or that may die one after the other before they had a cell.
MOST_TRIES = 3
_starting = threading.Lock()


class Worker:
    """One process that measures tasks one after the other; started when it is needed."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.n_done = 0  # of the present process
        self._closed = False
        self._process: BaseProcess | None = None
        self._connection: Connection

    def measure(
        self, task: Task, time_limit: float | None = None, stop_at: float | None = None
    ) -> tuple[Outcome, str] | None:
        """Return the outcome and its status (ok, failed or timeout); None if ``stop_at`` came first."""
        reason = ""
        for _ in range(MOST_TRIES):
            started = False
            try:
                if self._process is None:
                    self._start()
                    if self._closed or not self._answers(time.monotonic() + _START_LIMIT, stop_at):
                        self.stop()
                        if self._closed or _is_past(stop_at):
                            return None
                        raise RuntimeError(f"A worker process did not start within {_START_LIMIT:g} s.")
                    self._connection.recv()
                started = True
                self._connection.send(task)
                if not self._answers(time.monotonic() + time_limit if time_limit else None, stop_at):
                    self.stop()
                    late = Outcome(error=f"longer than the limit of {time_limit or 0:g} s")
                    return None if _is_past(stop_at) else (late, "timeout")
                outcome = self._connection.recv()
            except (EOFError, OSError):
                reason = f"the worker process died (exit code {self.stop(patience=5.0)}), {MOST_TRIES} times"
                if self._closed:
                    return None
                continue
            self.n_done += 1
            return outcome, "failed" if outcome.error else "ok"
        if not started:
            raise RuntimeError(f"A worker process could not start: {reason}.")
        return Outcome(error=reason), "failed"

    def stop(self, patience: float = 0.0) -> int | None:
        """End the process, whatever it does, and return its exit code; the next task starts another."""
        process, self._process, self.n_done = self._process, None, 0
        if process is None:
            return None
        process.join(patience)
        process.kill()
        process.join()
        self._connection.close()
        return process.exitcode

    def close(self) -> None:
        """End the process for good; called by another thread than the one that waits for it."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        process = context.Process(target=_serve, args=(child,), daemon=True)
        with _starting, _environment(dict.fromkeys(_THREAD_VARIABLES, str(self.n_threads))):
            process.start()
        self._process = process
        child.close()

    def _answers(self, deadline: float | None, stop_at: float | None) -> bool:
        """Whether the process says something, or is gone, before either moment."""
        ends = [moment for moment in (deadline, stop_at) if moment is not None]
        while True:
            left = min(ends) - time.monotonic() if ends else 3600.0
            if self._connection.poll(max(0.0, left)):
                return True
            if ends and time.monotonic() >= min(ends):
                return False


def run_tasks(
    sources: Iterable[tuple[int, TaskSource]],
    on_outcome: Callable[[int, Outcome, str], None],
    *,
    n_workers: int,
    n_threads: int = 1,
    time_limit: float | None = None,
    cells_per_worker: int = 500,
    stop_at: float | None = None,
    make_worker: Callable[[int], Worker] = Worker,
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
    make_worker : callable
        From the number of threads to a worker: here, or on a cluster.
    """
    workers = [make_worker(n_threads) for _ in range(n_workers)]
    tasks = ((number, task) for number, source in sources if (task := source()) is not None)
    one_at_a_time = threading.Lock()  # rows are prepared and written by one thread at a time

    def work(worker: Worker) -> None:
        while not _is_past(stop_at):
            with one_at_a_time:
                number, task = next(tasks, (0, None))
            if task is None:
                break
            if worker.n_done >= cells_per_worker:
                worker.stop()
            found = worker.measure(task, time_limit, stop_at)
            if found is None:
                break
            with one_at_a_time:
                on_outcome(number, *found)
        worker.stop()

    with ThreadPoolExecutor(n_workers) as threads:
        try:
            done, _ = wait([threads.submit(work, worker) for worker in workers], return_when=FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.close()
    for future in done:
        future.result()


def _is_past(moment: float | None) -> bool:
    return moment is not None and time.monotonic() >= moment


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


def _serve(connection: Connection) -> None:
    """The life of a worker: say that it is ready, then measure what comes until the run is over."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            task = connection.recv()
        except EOFError:  # the run is over
            return
        connection.send(measure(task))


def _die_with_parent() -> None:
    """End this worker when the run that started it is gone, even in the middle of a cell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
