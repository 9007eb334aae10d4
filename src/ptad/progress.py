"""Progress of long work: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

Whoever wants the events themselves takes them with :func:`ptad.reporter.reported_to`.

Lines go to the log of ``ptad`` where it is shown, and to stderr otherwise: a script or a notebook that has set up no
logging sees them too. The first line says what begins; later ones come a few seconds apart, so that quick work stays
one line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptad.reporter import Reporter, chosen_reporter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger("ptad")

PAUSE = 2.0  # seconds between two lines


@contextlib.contextmanager
def shown_progress(verbose: int, opening: str | None = None) -> Iterator[Reporter | None]:
    """Yield what long work reports to, or None for silence; ``opening`` says what begins."""
    if (chosen := chosen_reporter()) is not None:
        yield chosen
    elif verbose <= 0:
        yield None
    elif on_terminal():
        with contextlib.closing(Bars()) as bars:
            yield bars
    else:
        yield Lines(opening)


def on_terminal() -> bool:
    """Whether a person looks at stderr on a terminal that can move its cursor."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class Lines:
    """Reports as plain text, without control characters."""

    def __init__(self, opening: str | None = None) -> None:
        self._logged = logger.isEnabledFor(logging.INFO) and logger.hasHandlers()
        self._last = time.monotonic()
        if opening is not None:
            self._write(opening)

    def stage(self, name: str, done: int, total: int, unit: str) -> None:
        """Say how much of a stage is done."""
        self._write_sometimes(f"{name}: {_count(done, total)} {unit}")

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Say where training stands."""
        self._write_sometimes(f"training: {_count(step, n_steps)} steps, loss {entry['total']:.4g}")

    def _write_sometimes(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= PAUSE:
            self._last = now
            self._write(text)

    def _write(self, text: str) -> None:
        if self._logged:
            logger.info("%s", text)
        elif sys.stderr is not None:
            sys.stderr.write(f"ptad: {text}\n")
            sys.stderr.flush()


class Bars:
    """Reports as one bar per stage, which are gone when the work is done."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def stage(self, name: str, done: int, total: int, unit: str) -> None:
        """Move the bar of a stage."""
        self._move(name, done, total, f"{_count(done, total)} {unit}", unit)

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Move the bar of training."""
        self._move("training", step, n_steps, f"{_count(step, n_steps)} steps, loss {entry['total']:.4g}", "steps")

    def close(self) -> None:
        """Take the bars away."""
        if self._bars is not None:
            self._bars.stop()

    def _move(self, name: str, done: int, total: int, state: str, unit: str) -> None:
        if self._bars is None:
            self._bars = _rich_bars()
            self._bars.start()
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=None, state=state, speed="")
        place = self._tasks[name]
        self._bars.update(place, completed=done, total=total or None, state=state)
        speed = self._bars.tasks[place].speed  # tasks are numbered from 0, and none is removed
        self._bars.update(place, speed=f"{speed:,.0f} {unit}/s" if speed else "")


def _count(done: int, total: int) -> str:
    return f"{done:,} of {total:,}" if total else f"{done:,}"


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
