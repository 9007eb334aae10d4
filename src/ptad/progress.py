"""Progress of a fit: a bar on a terminal, log lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptad.terms.base import Progress as Report

if TYPE_CHECKING:
    from rich.progress import Progress

logger = logging.getLogger("ptad")


@contextlib.contextmanager
def fit_progress(verbose: int) -> Iterator[Report | None]:
    """Yield what the training loop calls at every interval, or None for silence."""
    if verbose <= 0:
        yield None
    elif sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task("training", total=None, loss=float("nan"))

            def update(step: int, n_steps: int, entry: dict[str, float]) -> None:
                bar.update(task, completed=step, total=n_steps, loss=entry["total"])

            yield update
    else:
        yield lambda step, n_steps, entry: logger.info("step %d of %d: loss %.6g", step, n_steps, entry["total"])


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (  # only a terminal needs it
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4g}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
