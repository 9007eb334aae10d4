"""The batcher: one thread that scores, for all callers.

Small calls that wait are scored together, since a row's score does not depend on its batch: the fixed cost of a call is
shared. Large tables go through the same thread in chunks of a few hundredths of a second, one chunk between two
batches of small calls, so neither starves the other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.errors import UserError
from ptad.estimator import PTAD
from ptad.service.json_rows import MOST_LISTED, JsonRow, encode_rows
from ptad.service.metrics import Metrics
from ptad.service.problems import Problem
from ptad.tables import BadCells
from ptad.tables.bad_cells import BadCell

BATCH_ROWS = 256
CHUNK_SECONDS = 0.04  # what a small call waits for at most, beside the batch before its own
SMALLEST_CHUNK, LARGEST_CHUNK = 8, 4096


@dataclass(frozen=True, eq=False)
class RowScores:
    """The scores of some rows, the number of their bad cells, and the first of those."""

    scores: Matrix
    n_bad: int
    first_bad: list[BadCell]


@dataclass(frozen=True, eq=False)
class _Call:
    model: PTAD
    rows: Sequence[JsonRow]
    result: asyncio.Future[RowScores]


@dataclass(frozen=True, eq=False)
class _Chunk:
    function: Callable[[], Any]
    chunk_size: ChunkSize | None
    result: asyncio.Future[Any]


class ChunkSize:
    """The number of rows that takes about ``CHUNK_SECONDS``, adapted after every chunk."""

    def __init__(self) -> None:
        self.rows = 32

    def adapt(self, seconds: float) -> None:
        """Adapt to the time that the last chunk took, by a factor of 2 at most: the machine may have been busy."""
        rows = self.rows * CHUNK_SECONDS / max(seconds, 1e-4)
        self.rows = int(np.clip(np.clip(rows, self.rows / 2, self.rows * 2), SMALLEST_CHUNK, LARGEST_CHUNK))


class Batcher:
    """Scores small calls in batches, with chunks of large work in between; at most ``waiting_rows`` may wait."""

    def __init__(self, waiting_rows: int, metrics: Metrics) -> None:
        self._most_waiting, self._metrics = waiting_rows, metrics
        self._calls: deque[_Call] = deque()
        self._chunks: deque[_Chunk] = deque()
        self._waiting = 0  # rows
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ptad-batcher", daemon=True)
        self._thread.start()

    async def score(self, model: PTAD, rows: Sequence[JsonRow]) -> RowScores:
        """Return the scores of a few rows."""
        call = _Call(model, rows, asyncio.get_running_loop().create_future())
        with self._wake:
            if self._waiting + len(rows) > self._most_waiting:
                message = f"More than {self._most_waiting} rows are waiting to be scored. Try again in a moment."
                raise Problem(503, message, headers={"Retry-After": "1"})
            self._waiting += len(rows)
            self._calls.append(call)
            self._wake.notify()
        return await call.result

    async def score_many(self, model: PTAD, x: Matrix) -> Matrix:
        """Return the scores of encoded rows, chunk by chunk."""
        chunk_size, parts, start = ChunkSize(), [], 0
        while start < len(x):
            # a model with a batch size scores rows together: they cannot be divided
            n_rows = len(x) if model.detector_.batch_size is not None else chunk_size.rows
            parts.append(await self.run(partial(model.detector_.scores, x[start : start + n_rows]), chunk_size))
            start += n_rows
        self._metrics.rows.labels("large").inc(len(x))
        return np.concatenate(parts)

    async def run(self, function: Callable[[], Any], chunk_size: ChunkSize | None = None) -> Any:
        """Run a chunk of large work, and adapt the chunk size to the time that it takes."""
        chunk = _Chunk(function, chunk_size, asyncio.get_running_loop().create_future())
        with self._wake:
            self._chunks.append(chunk)
            self._wake.notify()
        return await chunk.result

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join(timeout=30)

    # in the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._calls or self._chunks or self._closed):
                    self._wake.wait()
                if self._closed and not (self._calls or self._chunks):
                    return
                batch = self._next_batch()
                chunk = self._chunks.popleft() if self._chunks else None
            if batch:
                started = time.perf_counter()
                outcomes = _score_calls(batch)
                seconds = time.perf_counter() - started
                self._metrics.batch(len(batch), sum(len(call.rows) for call in batch), seconds)
                _set_results([call.result for call in batch], outcomes)
            if chunk is not None and not chunk.result.cancelled():
                _set_results([chunk.result], [_run_chunk(chunk)])

    def _next_batch(self) -> list[_Call]:
        """Take calls for one model, the longest waiting one first."""
        batch: list[_Call] = []
        others: deque[_Call] = deque()
        n_rows = 0
        while self._calls:
            call = self._calls.popleft()
            if call.result.cancelled():
                self._waiting -= len(call.rows)
            elif not batch or (
                call.model is batch[0].model
                and n_rows + len(call.rows) <= BATCH_ROWS
                and call.model.detector_.batch_size is None  # otherwise scores do depend on the batch
            ):
                batch.append(call)
                n_rows += len(call.rows)
                self._waiting -= len(call.rows)
            else:
                others.append(call)
        self._calls = others
        return batch


def _score_calls(batch: list[_Call]) -> list[RowScores | Exception]:
    """Score calls together; if a row is invalid, in halves, so that only its own call fails."""
    model, bad = batch[0].model, BadCells()
    lengths = [len(call.rows) for call in batch]
    try:
        x = encode_rows(model.schema_, [row for call in batch for row in call.rows], bad)
        scores = np.split(model.detector_.scores(x), np.cumsum(lengths)[:-1])
        return [RowScores(s, *cells) for s, cells in zip(scores, bad.split(lengths, MOST_LISTED), strict=True)]
    except Exception as error:
        if len(batch) == 1 or not isinstance(error, UserError):
            return [error] * len(batch)
    middle = len(batch) // 2
    return _score_calls(batch[:middle]) + _score_calls(batch[middle:])


def _run_chunk(chunk: _Chunk) -> Any:
    started = time.perf_counter()
    try:
        return chunk.function()
    except Exception as error:
        return error
    finally:
        if chunk.chunk_size is not None:
            chunk.chunk_size.adapt(time.perf_counter() - started)


def _set_results(futures: list[asyncio.Future[Any]], outcomes: list[Any]) -> None:
    """Hand results or errors over to the event loop, all at once."""

    def set_all() -> None:
        for future, outcome in zip(futures, outcomes, strict=True):
            if future.done():  # the caller has gone
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    futures[0].get_loop().call_soon_threadsafe(set_all)
