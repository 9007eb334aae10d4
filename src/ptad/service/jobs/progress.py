"""Progress of a job: events as lines of JSON, written by its worker, read by the service.

An event is one of ``{stage, done, total, unit}`` (a total of 0 is not known), ``{group, step, steps, loss}`` (a step of
a training; every fold is a group), and ``{note}``.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptad.errors import Message
from ptad.progress import reported_to
from ptad.service.error_messages import spell_for_http

FILE = "progress.jsonl"
PAUSE = 0.3  # seconds between two events of a stage
LONGEST_NOTE = 300


class ProgressFile(logging.Handler):
    """Writes the events of a worker; warnings that the library logs become notes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(logging.WARNING)
        self._path = folder / FILE
        self._group, self._last_step, self._last_time = 0, 0, 0.0
        if self._path.exists() and (content := self._path.read_bytes()) and not content.endswith(b"\n"):
            os.truncate(self._path, content.rfind(b"\n") + 1)  # a line cut off by a kill

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Receive progress and warnings of the library inside the block."""
        logger = logging.getLogger("ptad")
        logger.addHandler(self)
        try:
            with reported_to(self):
                yield
        finally:
            logger.removeHandler(self)

    @contextmanager
    def reading(self) -> Iterator[Callable[[int, int | None], None]]:
        """Yield a function that records how many rows were read."""
        yield lambda done, total: self.stage("reading", done, total or 0, "rows")

    def stage(self, name: str, done: int, total: int, unit: str) -> None:
        """Record how much of a stage is done, a few times a second at most."""
        if done == total or time.monotonic() - self._last_time > PAUSE:
            self._last_time = time.monotonic()
            self._append({"stage": name, "done": done, "total": total, "unit": unit})

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Record a step of a training."""
        if step <= self._last_step:
            self._group += 1  # another fold: its training begins at the first step
        self._last_step = step
        self._append({"group": self._group, "step": step, "steps": n_steps, "loss": float(entry["total"])})

    def note(self, text: str) -> None:
        """Record a note for those who follow the job."""
        self._append({"note": text[:LONGEST_NOTE]})

    def emit(self, record: logging.LogRecord) -> None:
        """Record a warning."""
        self.note(record.msg.phrase(spell_for_http) if isinstance(record.msg, Message) else record.getMessage())

    def _append(self, event: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(event).encode() + b"\n")


class Events:
    """Reads the events of a worker, each once; the first ``skip`` are skipped."""

    def __init__(self, folder: Path, skip: int = 0) -> None:
        self._path, self._skip, self._position = folder / FILE, skip, 0

    def read(self) -> list[dict[str, Any]]:
        """Return the events that were written since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                block = file.read()
        except OSError:
            return []
        complete = block[: block.rfind(b"\n") + 1]
        self._position += len(complete)
        lines = complete.splitlines()
        new, self._skip = lines[self._skip :], max(0, self._skip - len(lines))
        return list(map(_parse, new))


def _parse(line: bytes) -> dict[str, Any]:
    try:
        event: dict[str, Any] = json.loads(line)
        return event
    except ValueError:  # cut off when the machine went down
        return {}
