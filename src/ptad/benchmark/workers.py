"""Worker processes that measure cells, each with a time limit; a dead or late one is replaced.

A worker may be killed for reasons that have nothing to do with its cell, so the cell is tried again; it fails when it
has lost ``MAX_TRIES`` workers.
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

#: Makes a task when a worker is free, so that only few tables are on the disk at once. None: skip it.
TaskSource = Callable[[], Task | None]
#: Runs tasks: :func:`run_tasks`, or its counterpart for a cluster.
Executor = Callable[..., None]
_START_LIMIT = 300.0
#: One thread per worker: small networks are slower with more. Libraries read these when they are first imported.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
#: Workers that one cell may lose, or that may die one after the other before they start.
MAX_TRIES = 3
#: A worker process is replaced after so many cells, in case a method leaks memory.
CELLS_PER_WORKER = 500
_environment_lock = threading.Lock()


class Worker:
    """One process that measures tasks one after the other; it is started when the first task comes."""

    def __init__(self) -> None:
        self.n_done = 0  # by the current process
        self._closed = False
        self._process: BaseProcess | None = None
        self._connection: Connection

    def measure(
        self, task: Task, time_limit: float | None = None, stop_at: float | None = None
    ) -> tuple[Outcome, str] | None:
        """Return the outcome and its status (ok, failed or timeout); None if ``stop_at`` came first."""
        if self.n_done >= CELLS_PER_WORKER:
            self.stop()
        reason = ""
        for _ in range(MAX_TRIES):
            started = False
            try:
                if self._process is None:
                    self._start()
                    if self._closed or not self._wait_for_message(time.monotonic() + _START_LIMIT, stop_at):
                        self.stop()
                        if self._closed or _is_past(stop_at):
                            return None
                        raise RuntimeError(f"A worker process did not start within {_START_LIMIT:g} s.")
                    self._connection.recv()
                started = True
                self._connection.send(task)
                if not self._wait_for_message(time.monotonic() + time_limit if time_limit else None, stop_at):
                    self.stop()
                    late = Outcome(error=f"longer than the limit of {time_limit or 0:g} s")
                    return None if _is_past(stop_at) else (late, "timeout")
                outcome = self._connection.recv()
            except (EOFError, OSError):
                reason = f"the worker process died (exit code {self.stop(patience=5.0)}), {MAX_TRIES} times"
                if self._closed:
                    return None
                continue
            self.n_done += 1
            return outcome, "failed" if outcome.error else "ok"
        if not started:
            raise RuntimeError(f"A worker process could not start: {reason}.")
        return Outcome(error=reason), "failed"

    def stop(self, patience: float = 0.0) -> int | None:
        """Kill the process after ``patience`` seconds and return its exit code; the next task starts another."""
        process, self._process, self.n_done = self._process, None, 0
        if process is None:
            return None
        process.join(patience)
        process.kill()
        process.join()
        self._connection.close()
        return process.exitcode

    def close(self) -> None:
        """Kill the process for good; called from another thread than :meth:`measure`."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        process = context.Process(target=_serve, args=(child,), daemon=True)
        with _environment_lock, _environment(_ONE_THREAD):
            process.start()
        self._process = process
        child.close()

    def _wait_for_message(self, deadline: float | None, stop_at: float | None) -> bool:
        """Wait until the process sends something or ends; return False if either time came first."""
        end = min((moment for moment in (deadline, stop_at) if moment is not None), default=None)
        while True:
            left = 3600.0 if end is None else end - time.monotonic()
            if self._connection.poll(max(0.0, left)):
                return True
            if _is_past(end):
                return False


def run_tasks(
    sources: Iterable[tuple[int, TaskSource]],
    on_outcome: Callable[[int, Outcome, str], None],
    *,
    n_workers: int,
    time_limit: float | None = None,
    stop_at: float | None = None,
    make_worker: Callable[[], Worker] = Worker,
) -> None:
    """Measure all tasks and report each when it ends.

    Parameters
    ----------
    sources : iterable of (number, callable)
        The callable makes the task when a worker is free.
    on_outcome : callable
        ``(number, outcome, status)`` with status ``ok``, ``failed`` or ``timeout``.
    n_workers : int
        Worker processes.
    time_limit : float, optional
        Seconds per cell, start-up of the process not included.
    stop_at : float, optional
        Time of ``time.monotonic`` at which the run ends; unfinished cells have no outcome.
    make_worker : callable
        Makes a worker, here or on a cluster.
    """
    workers = [make_worker() for _ in range(n_workers)]
    tasks = ((number, task) for number, source in sources if (task := source()) is not None)
    one_at_a_time = threading.Lock()  # for preparing rows and writing results

    def work(worker: Worker) -> None:
        while not _is_past(stop_at):
            with one_at_a_time:
                number, task = next(tasks, (0, None))
            if task is None:
                break
            result = worker.measure(task, time_limit, stop_at)
            if result is None:
                break
            with one_at_a_time:
                on_outcome(number, *result)
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
    """Change environment variables for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _serve(connection: Connection) -> None:
    """Report that the worker is ready, then measure tasks until the connection is closed."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(measure(task))


def _exit_with_parent() -> None:
    """End this process when its parent is gone, even in the middle of a cell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
