"""Worker processes that measure cells, each with a time limit; a dead or late one is replaced.

A worker may be killed for reasons that have nothing to do with its cell, so the cell is tried again; it fails when it
has lost ``MAX_TRIES`` workers.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess

from ptad.benchmark.measurement import Outcome, Task, measure

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
        self._n_done = 0  # by the current process
        self._closed = False
        self._process: BaseProcess | None = None
        self._connection: Connection

    def measure(self, task: Task, time_limit: float | None = None) -> Outcome | None:
        """Return the outcome of a task; None if the worker was closed meanwhile."""
        if self._n_done >= CELLS_PER_WORKER:
            self.stop()
        reason = ""
        for _ in range(MAX_TRIES):
            started = False
            try:
                if self._process is None:
                    self._start()
                    if not self._closed and not self._connection.poll(_START_LIMIT):
                        self.stop()
                        raise RuntimeError(f"A worker process did not start within {_START_LIMIT:g} s.")
                    if self._closed:
                        self.stop()
                        return None
                    self._connection.recv()
                started = True
                self._connection.send(task)
                if not self._connection.poll(time_limit):
                    self.stop()
                    return Outcome("timeout", f"longer than the limit of {time_limit:g} s")
                outcome: Outcome = self._connection.recv()
            except (EOFError, OSError):
                reason = f"the worker process died (exit code {self.stop(patience=5.0)}), {MAX_TRIES} times"
                if self._closed:
                    return None
                continue
            self._n_done += 1
            return outcome
        if not started:
            raise RuntimeError(f"A worker process could not start: {reason}.")
        return Outcome("failed", reason)

    def stop(self, patience: float = 0.0) -> int | None:
        """Kill the process after ``patience`` seconds and return its exit code; the next task starts another."""
        process, self._process, self._n_done = self._process, None, 0
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


def run_tasks(
    tasks: Iterator[tuple[int, Task]],
    on_outcome: Callable[[int, Outcome], None],
    *,
    n_workers: int,
    time_limit: float | None = None,
    make_worker: Callable[[], Worker] = Worker,
) -> None:
    """Measure all tasks, one per worker at a time, and report each with its number when it ends.

    A task is taken when a worker is free. ``time_limit`` is in seconds per cell, start-up of the process not included.
    """
    workers = [make_worker() for _ in range(n_workers)]
    one_at_a_time = threading.Lock()  # for preparing rows and writing results

    def work(worker: Worker) -> None:
        while True:
            with one_at_a_time:
                number, task = next(tasks, (0, None))
            outcome = None if task is None else worker.measure(task, time_limit)
            if outcome is None:
                break
            with one_at_a_time:
                on_outcome(number, outcome)
        worker.stop()

    with ThreadPoolExecutor(n_workers) as threads:
        try:
            done, _ = wait([threads.submit(work, worker) for worker in workers], return_when=FIRST_EXCEPTION)
        finally:  # after an error or an interruption the other threads end as well
            for worker in workers:
                worker.close()
    for future in done:
        future.result()


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
