"""Chunks of rows in threads: constant memory, all processors, and the same results as in one chunk."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

CHUNK_ROWS = 128


def n_processors() -> int:
    """Return how many processors this process may use: those it is bound to, at most OMP_NUM_THREADS."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(bound, int(limit)) if limit.isdigit() and int(limit) else bound


@cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def in_chunks(function: Callable[[Any], Any], rows: Any, chunk_rows: int = CHUNK_ROWS) -> list[Any]:
    """Return the results of ``function`` for all chunks of rows, in order."""
    chunks = [rows[start : start + chunk_rows] for start in range(0, len(rows), chunk_rows)]
    # Each chunk has one thread; linear algebra with threads of its own would slow the others down.
    with _linear_algebra().limit(limits=1):
        if len(chunks) == 1 or (workers := n_processors()) == 1:
            return [function(chunk) for chunk in chunks]
        with ThreadPoolExecutor(min(workers, len(chunks))) as pool:
            return list(pool.map(function, chunks))
