"""What strangers send is read in processes of their own, with little memory and little time.

A file that expands without end, one endless line or a damaged block takes down such a process at worst, and the caller
is told so; the memory that it took is free again. The processes are forked from one that has imported everything, so
that a small table does not wait for Python to start.
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
from ptad.service.reasons import FULL, disk_is_full, reason_of
from ptad.service.settings import Limits

SMALL_AT_A_TIME, LARGE_AT_A_TIME = 1, 2  # so that a small table does not wait for large ones
SMALL_SECONDS = 60.0  # for a small one, which the others wait for
END_SECONDS = 5.0  # for a process that has said everything
MOST_SAID = 256 * 2**20  # bytes of an answer: a table may have thousands of columns, each with examples
CONTEXT: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
# each process imports again what the one that serves was started with: that is there already, too
# (pandas, because pyarrow looks for it when it first converts a column)
CONTEXT.set_forkserver_preload(["ptad.service.bodies", "ptad.service.sandbox", "ptad.cli", "pandas"])


class Sandbox:
    """Runs functions of :mod:`ptad.service.bodies`, a few at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._processes: set[Any] = set()
        self._small = ThreadPoolExecutor(SMALL_AT_A_TIME, "ptad-sandbox")
        self._large = ThreadPoolExecutor(LARGE_AT_A_TIME, "ptad-sandbox-large")
        self._small.submit(
            self._outcome, _nothing, {"path": Path(__file__), "name": ""}, []
        )  # so that the first caller does not wait

    async def run(self, work: Callable[..., Any], path: Path, **arguments: Any) -> Any:
        """Return ``work(limits, path, **arguments)``, plain JSON; ``name`` is what errors call the file."""
        started: list[Any] = []
        call = partial(self._outcome, work, {"path": path, **arguments}, started)
        threads = self._small if _is_small(path, self._limits) else self._large
        try:
            outcome = await asyncio.get_running_loop().run_in_executor(threads, call)
        except asyncio.CancelledError:  # nobody waits for it any more
            for process in started:
                process.kill()
            raise
        if outcome.get("full"):
            raise OSError(errno.ENOSPC, FULL)
        if "error" in outcome:
            raise DataError(outcome["error"])
        return outcome["ok"]

    def close(self) -> None:
        """End what is under way."""
        for threads in (self._small, self._large):
            threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._processes):
            process.kill()

    def _outcome(self, work: Callable[..., Any], arguments: dict[str, Any], started: list[Any]) -> dict[str, Any]:
        """Let a process work; what it says is plain JSON, since it may be under the spell of what it has read."""
        name, seconds = arguments["name"], self._limits.reading_seconds
        if _is_small(arguments["path"], self._limits):
            seconds = min(seconds, SMALL_SECONDS)
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_work, args=(sender, self._limits, work, arguments), daemon=True)
        with receiver:
            with sender:
                process.start()
            self._processes.add(process)
            started.append(process)
            try:
                if not receiver.poll(seconds):
                    process.kill()
                    return {"error": f"Reading {name} takes longer than {seconds:g} s. Send less."}
                found: dict[str, Any] = json.loads(receiver.recv_bytes(MOST_SAID))
                return found
            except EOFError:
                why = "It is damaged, or needs more memory or time than this service gives to one upload"
                return {"error": f"{name} ended the process that was reading it. {why}: check it, or send less."}
            finally:
                process.join(END_SECONDS)
                if process.is_alive():
                    process.kill()
                    process.join()
                self._processes.discard(process)


# in the process -------------------------------------------------------------------------------------------------------


def _nothing(limits: Limits, path: Path, name: str) -> None:
    pass


def _is_small(path: Path, limits: Limits) -> bool:
    return path.stat().st_size <= limits.small_upload_bytes


def _work(sender: Connection, limits: Limits, work: Callable[..., Any], arguments: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
    logging.getLogger("ptad").addHandler(logging.NullHandler())
    _limit(limits)
    if hasattr(os, "nice") and not _is_small(arguments["path"], limits):
        os.nice(5)
    try:
        outcome = {"ok": work(limits, **arguments)}
    except Exception as error:
        outcome = {"full": True} if disk_is_full(error) else {"error": _reason(error, arguments["name"])}
    sender.send_bytes(json.dumps(outcome).encode())


def _limit(limits: Limits) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the time limit of the parent remains
        return
    for what, most in (
        (resource.RLIMIT_AS, limits.reading_memory),
        (resource.RLIMIT_CPU, int(limits.reading_seconds) + 1),
        (resource.RLIMIT_FSIZE, limits.table_bytes + 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _reason(error: Exception, name: str) -> str:
    if (reason := reason_of(error)) is not None:
        return reason
    if isinstance(error, MemoryError):
        return f"{name} needs more memory than this service gives to one upload. Send a smaller one."
    # the content of a file is no reason for a traceback
    formats = "a CSV, TSV, Parquet, Arrow, JSON lines or Excel table"
    return f"{name} cannot be read ({type(error).__name__}). Check that it is {formats}."
