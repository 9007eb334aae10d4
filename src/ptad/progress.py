"""Progress of long work: events with fields, and their display.

Work reports to a :class:`Reporter`. By default that is a bar on a terminal, plain lines elsewhere, and nothing with
``verbose=0``; :func:`reported_to` sets another one.

Lines go to the log of ``ptad`` if it has a handler, and to stderr otherwise, so that scripts and notebooks without
logging show them too. The first line names the work; later ones are seconds apart, so that quick work stays one line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger("ptad")

PAUSE = 2.0  # seconds between two lines

RowsDone = Callable[[int], None]  # called with the number of finished rows


class Reporter(Protocol):
    """Receives the progress of long work."""

    def stage(self, name: str, done: int, total: int, unit: str) -> None:
        """Report how much of a stage is done; a total of 0 means unknown."""

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Report a step of the training of a term and an entry of its history."""


_chosen: ContextVar[Reporter | None] = ContextVar("ptad_reporter", default=None)


@contextlib.contextmanager
def reported_to(reporter: Reporter) -> Iterator[None]:
    """Make all work inside report to this one instead of showing its progress."""
    token = _chosen.set(reporter)
    try:
        yield
    finally:
        _chosen.reset(token)


def rows_reported(reporter: Reporter | None, stage: str, n_rows: int, before: int = 0) -> RowsDone | None:
    """Return a callback that reports finished rows of a stage, of which ``before`` were finished earlier."""
    if reporter is None:
        return None
    return lambda done: reporter.stage(stage, before + done, n_rows, "rows")


@contextlib.contextmanager
def shown_progress(verbose: int, opening: str | None = None) -> Iterator[Reporter | None]:
    """Yield the reporter for long work, or None to be silent; ``opening`` names the work."""
    if (chosen := _chosen.get()) is not None:
        yield chosen
    elif verbose <= 0:
        yield None
    elif on_terminal():
        with contextlib.closing(Bars()) as bars:
            yield bars
    else:
        yield Lines(opening)


def on_terminal() -> bool:
    """Return whether stderr is a terminal that can move its cursor."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class _TextReporter:
    """Formats events as text."""

    def stage(self, name: str, done: int, total: int, unit: str, suffix: str = "") -> None:
        """Show how much of a stage is done."""
        count = f"{done:,} of {total:,}" if total else f"{done:,}"
        self._show(name, f"{count} {unit}{suffix}", done, total, unit)

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Show the step and the loss of a training."""
        self.stage("training", step, n_steps, "steps", f", loss {entry['total']:.4g}")

    def _show(self, name: str, state: str, done: int, total: int, unit: str) -> None:
        raise NotImplementedError


class Lines(_TextReporter):
    """Reports as plain text, without control characters."""

    def __init__(self, opening: str | None = None) -> None:
        self._logged = logger.isEnabledFor(logging.INFO) and logger.hasHandlers()
        self._last = time.monotonic()
        if opening is not None:
            self._write(opening)

    def _show(self, name: str, state: str, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if now - self._last >= PAUSE:
            self._last = now
            self._write(f"{name}: {state}")

    def _write(self, text: str) -> None:
        if self._logged:
            logger.info("%s", text)
        elif sys.stderr is not None:
            sys.stderr.write(f"ptad: {text}\n")
            sys.stderr.flush()


class Bars(_TextReporter):
    """Reports as one bar per stage, which are removed when the work is done."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def close(self) -> None:
        """Remove the bars."""
        if self._bars is not None:
            self._bars.stop()

    def _show(self, name: str, state: str, done: int, total: int, unit: str) -> None:
        if self._bars is None:
            self._bars = _rich_bars()
            self._bars.start()
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=None, state=state, speed="")
        place = self._tasks[name]
        self._bars.update(place, completed=done, total=total or None, state=state)
        speed = self._bars.tasks[place].speed  # tasks are numbered from 0, and none is removed
        self._bars.update(place, speed=f"{speed:,.0f} {unit}/s" if speed else "")


def _rich_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
