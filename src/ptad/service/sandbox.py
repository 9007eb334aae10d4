"""Untrusted input is read in processes of their own, with limited memory and time.

A file that expands without end, an endless line or a damaged block ends such a process at worst: the caller gets an
error, and the memory is free again. The processes are forked from one that has imported everything, so that a small
table does not wait for Python to start.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ptad.errors import DataError
from ptad.service.error_messages import DISK_FULL, is_disk_full, user_message
from ptad.service.process_limits import limit_process
from ptad.service.settings import Limits

SMALL_WORKERS, LARGE_WORKERS = 1, 2  # so that a small table does not wait for large ones
FAST_SECONDS = 3.0  # for a small table, which the others wait for; one that takes longer is read among the large ones
SMALL_SECONDS = 60.0  # for a small table there
EXIT_SECONDS = 5.0  # for a process that has sent its result
MOST_RESULT_BYTES = 256 * 2**20  # a table may have thousands of columns, each with examples
MULTIPROCESSING: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
# ptad.cli, because each process imports the main module again; pandas, because pyarrow looks for it when it first
# converts a column
MULTIPROCESSING.set_forkserver_preload(["ptad.service.sandbox_tasks", "ptad.service.sandbox", "ptad.cli", "pandas"])


class Sandbox:
    """Runs functions of :mod:`ptad.service.sandbox_tasks`, a few at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._processes: set[Any] = set()
        self._small = ThreadPoolExecutor(SMALL_WORKERS, "ptad-sandbox")
        self._large = ThreadPoolExecutor(LARGE_WORKERS, "ptad-sandbox-large")
        # the server that forks is started now: the first caller does not wait for it
        self._small.submit(self._run, _do_nothing, {"path": Path(__file__), "name": ""}, limits.reading_seconds, [])

    async def run(self, task: Callable[..., Any], path: Path, **arguments: Any) -> Any:
        """Return ``task(limits, path, **arguments)``, plain JSON; ``name`` is what errors call the file."""
        arguments, outcome, seconds = {"path": path, **arguments}, None, self._limits.reading_seconds
        if path.stat().st_size <= self._limits.small_upload_bytes:
            outcome = await self._run_in(self._small, task, arguments, min(seconds, FAST_SECONDS))
            seconds = min(seconds, SMALL_SECONDS)
        if outcome is None:  # a large file, or a small one that unpacks to a large table: it is read again
            outcome = await self._run_in(self._large, task, arguments, seconds)
        if outcome is None:
            raise DataError(f"Reading {arguments['name']} takes longer than {seconds:g} s. Send a smaller table.")
        if outcome.get("full"):
            raise OSError(errno.ENOSPC, DISK_FULL)
        if "error" in outcome:
            raise DataError(outcome["error"])
        return outcome["result"]

    def close(self) -> None:
        """End all processes."""
        for threads in (self._small, self._large):
            threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._processes):
            process.kill()

    async def _run_in(
        self, threads: ThreadPoolExecutor, task: Callable[..., Any], arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any] | None:
        started: list[Any] = []
        call = partial(self._run, task, arguments, seconds, started)
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, call)
        except asyncio.CancelledError:  # nobody waits for the result any more
            for process in started:
                process.kill()
            raise

    def _run(
        self, task: Callable[..., Any], arguments: dict[str, Any], seconds: float, started: list[Any]
    ) -> dict[str, Any] | None:
        """Run a task in a process and return its outcome, None if it takes longer than ``seconds``.

        The outcome is read as JSON, since the input may have taken the process over.
        """
        receiver, sender = MULTIPROCESSING.Pipe(duplex=False)
        given = (sender, self._limits, task, arguments, seconds > FAST_SECONDS)
        process = MULTIPROCESSING.Process(target=_main, args=given, daemon=True)
        with receiver:
            with sender:
                process.start()
            self._processes.add(process)
            started.append(process)
            try:
                if not receiver.poll(seconds):
                    process.kill()
                    return None
                outcome: dict[str, Any] = json.loads(receiver.recv_bytes(MOST_RESULT_BYTES))
                return outcome
            except EOFError:
                why = "it is damaged, or needs more memory or time than one upload may use"
                return {"error": f"{arguments['name']} could not be read: {why}. Check it, or send a smaller one."}
            finally:
                process.join(EXIT_SECONDS)
                if process.is_alive():
                    process.kill()
                    process.join()
                self._processes.discard(process)


# in the process -------------------------------------------------------------------------------------------------------


def _do_nothing(limits: Limits, path: Path, name: str) -> None:
    pass


def _main(
    sender: Connection, limits: Limits, task: Callable[..., Any], arguments: dict[str, Any], is_long: bool
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service
    with open(os.devnull, "w") as devnull:  # noqa: PTH123
        for descriptor in (1, 2):
            os.dup2(devnull.fileno(), descriptor)
    logging.getLogger("ptad").addHandler(logging.NullHandler())
    limit_process(
        AS=limits.reading_memory, CPU=int(limits.reading_seconds) + 1, FSIZE=limits.table_bytes + 2**20
    )  # where there are no such limits (Windows), the time limit of the parent remains
    if is_long and hasattr(os, "nice"):
        os.nice(5)
    try:
        outcome = {"result": task(limits, **arguments)}
    except Exception as error:
        outcome = {"full": True} if is_disk_full(error) else {"error": _message(error, arguments["name"])}
    sender.send_bytes(json.dumps(outcome).encode())


def _message(error: Exception, name: str) -> str:
    if (message := user_message(error)) is not None:
        return message
    if isinstance(error, MemoryError):
        return f"{name} needs more memory than this service gives to one upload. Send a smaller one."
    # the content of a file is no reason for a traceback
    formats = "a CSV, TSV, Parquet, Arrow, JSON lines or Excel table"
    return f"{name} cannot be read ({type(error).__name__}). Check that it is {formats}."
