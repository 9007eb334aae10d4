"""The batcher: one thread that scores, for all callers.

Small calls that wait are scored together, since a row's score does not depend on its batch: the fixed cost of a
call is shared. Large tables go through the same thread in chunks of a few hundredths of a second, one
chunk between two batches of small calls, so neither starves the other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptad.errors import UserError
from ptad.estimator import PTAD
from ptad.service.metrics import Metrics
from ptad.service.problems import Problem
from ptad.service.rows import MOST_LISTED, Row, encode_rows
from ptad.tables import BadCells
from ptad.tables.bad_cells import BadCell

Array = NDArray[np.float64]
Result = TypeVar("Result")

BATCH_ROWS = 256
CHUNK_SECONDS = 0.06  # what a small call waits for at most, beside the batch before its own
SMALLEST_CHUNK, LARGEST_CHUNK = 8, 4096


@dataclass(frozen=True, eq=False)
class RowScores:
    """The scores of some rows, the number of cells that could not be read, and the first of those."""

    scores: Array
    n_bad: int
    first_bad: list[BadCell]


@dataclass(eq=False)
class _Call:
    model: PTAD
    rows: Sequence[Row]
    answer: asyncio.Future[RowScores]
    outcome: RowScores | BaseException | None = None


@dataclass(eq=False)
class _Work:
    function: Callable[[], Any]
    answer: asyncio.Future[Any]


class Batcher:
    """Scores small calls in batches and lets large work in between.

    Parameters
    ----------
    waiting_rows : int
        Rows that may wait; more are turned away at once.
    metrics : Metrics
        Told the size of every batch.
    """

    def __init__(self, waiting_rows: int, metrics: Metrics) -> None:
        self._most, self._metrics = waiting_rows, metrics
        self._calls: deque[_Call] = deque()
        self._works: deque[_Work] = deque()
        self._waiting = 0
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ptad-batcher", daemon=True)
        self._thread.start()

    async def score(self, model: PTAD, rows: Sequence[Row]) -> RowScores:
        """Return the scores of a few rows."""
        call = _Call(model, rows, asyncio.get_running_loop().create_future())
        with self._wake:
            if self._waiting + len(rows) > self._most:
                raise Problem(
                    503,
                    f"More than {self._most} rows are waiting to be scored. Try again in a moment.",
                    headers={"Retry-After": "1"},
                )
            self._waiting += len(rows)
            self._calls.append(call)
            self._wake.notify()
        return await call.answer

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run a piece of large work, which should take no longer than ``CHUNK_SECONDS``."""
        work = _Work(function, asyncio.get_running_loop().create_future())
        with self._wake:
            self._works.append(work)
            self._wake.notify()
        result: Result = await work.answer
        return result

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join(timeout=30)

    # in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._calls or self._works or self._closed):
                    self._wake.wait()
                if self._closed and not (self._calls or self._works):
                    return
                batch = self._next_batch()
                work = self._works.popleft() if self._works else None
            if batch:
                self._answer(batch)
            if work is not None:
                self._perform(work)

    def _next_batch(self) -> list[_Call]:
        """Calls for one model, the longest waiting one first."""
        batch: list[_Call] = []
        others: deque[_Call] = deque()
        n_rows = 0
        while self._calls:
            call = self._calls.popleft()
            if call.answer.cancelled():
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

    def _answer(self, batch: list[_Call]) -> None:
        encoded = []
        for call in batch:
            call.outcome = None
        started = time.perf_counter()
        model, bad = batch[0].model, BadCells()
        try:
            x = encode_rows(model.schema_, [row for call in batch for row in call.rows], bad)
            encoded = batch
        except UserError:
            parts, bad = [], BadCells()
            for call in batch:  # one of them is wrong: only its caller hears of it
                own = BadCells()
                try:
                    parts.append(encode_rows(model.schema_, call.rows, own))
                    encoded.append(call)
                    bad.add_all(own, sum(map(len, parts[:-1])) + np.arange(len(call.rows)))
                except Exception as error:
                    call.outcome = error
            x = np.concatenate(parts) if parts else np.empty((0, 0))
        except Exception as error:
            for call in batch:
                call.outcome = error
        if encoded:
            try:
                scores = score_encoded(model, x)
                lengths, start = [len(call.rows) for call in encoded], 0
                for call, (n_bad, first_bad) in zip(encoded, bad.of_parts(lengths, MOST_LISTED), strict=True):
                    stop = start + len(call.rows)
                    call.outcome = RowScores(scores[start:stop], n_bad, first_bad)
                    start = stop
            except Exception as error:
                for call in encoded:
                    call.outcome = error
        self._metrics.batch(len(batch), len(x) if encoded else 0, time.perf_counter() - started)
        batch[0].answer.get_loop().call_soon_threadsafe(_deliver, batch)

    def _perform(self, work: _Work) -> None:
        if work.answer.cancelled():
            return
        try:
            result, error = work.function(), None
        except Exception as found:
            result, error = None, found
        work.answer.get_loop().call_soon_threadsafe(_settle, work.answer, result, error)


def score_encoded(model: PTAD, x: Array) -> Array:
    """Scores of encoded rows."""
    return model.detector_.scores(x)


class Pace:
    """How many rows make a chunk of about ``CHUNK_SECONDS``, found out while chunks are worked on."""

    def __init__(self, rows: int = 32) -> None:
        self.rows = rows

    def took(self, seconds: float) -> None:
        """Tell how long the last chunk took."""
        wanted = self.rows * CHUNK_SECONDS / max(seconds, 1e-4)
        # a step at a time: a chunk may have been slow because the machine was busy
        self.rows = int(np.clip(np.clip(wanted, self.rows / 2, self.rows * 2), SMALLEST_CHUNK, LARGEST_CHUNK))


def _deliver(batch: list[_Call]) -> None:
    for call in batch:
        if isinstance(call.outcome, BaseException):
            _settle(call.answer, None, call.outcome)
        else:
            _settle(call.answer, call.outcome, None)


def _settle(answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if answer.done():  # the caller has gone
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(result)
