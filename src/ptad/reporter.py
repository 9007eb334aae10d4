"""What long work reports to, as events with fields; :mod:`ptad.progress` makes text of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

RowsDone = Callable[[int], None]  # told how many rows are done


class Reporter(Protocol):
    """What takes in how far long work has come."""

    def stage(self, name: str, done: int, total: int, unit: str) -> None:
        """Take in how much of a stage is done; a total of 0 is one that is not known."""

    def step(self, step: int, n_steps: int, entry: dict[str, float]) -> None:
        """Take in where the training of a term stands."""


_chosen: ContextVar[Reporter | None] = ContextVar("ptad_reporter", default=None)


@contextmanager
def reported_to(reporter: Reporter) -> Iterator[None]:
    """Let all work inside report to this one, whatever it would show by itself."""
    token = _chosen.set(reporter)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen_reporter() -> Reporter | None:
    """Return the reporter of :func:`reported_to`; None where work shows its progress itself."""
    return _chosen.get()


def rows_reported(reporter: Reporter | None, stage: str, n_rows: int, before: int = 0) -> RowsDone | None:
    """Return what reports the rows of a stage as they are done, ``before`` of which were done already."""
    if reporter is None:
        return None
    return lambda done: reporter.stage(stage, before + done, n_rows, "rows")
