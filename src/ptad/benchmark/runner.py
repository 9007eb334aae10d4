"""Measure a grid of cells: prepare the rows, hand them to workers, evaluate the scores, write one row per cell."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.encoding import scale_columns
from ptad.benchmark.loading import Dataset, cap_split, duplicate_share
from ptad.benchmark.measurement import Outcome, Task, versions
from ptad.benchmark.metrics import evaluate, observed_false_alarms
from ptad.benchmark.plan import Cell, RunSettings, adopt_equal_cells, plan_cells
from ptad.benchmark.store import COST_COLUMNS, ResultStore, Row
from ptad.benchmark.workers import Executor, run_tasks
from ptad.devices import resolve_device
from ptad.errors import DataError

logger = logging.getLogger(__name__)

#: Gives a table by its name and the seed of the cell; synthetic tables differ with the seed.
Loader = Callable[[str, int], Dataset]


@dataclass(frozen=True)
class PreparedRows:
    """What all cells of one table, seed and scaling share: rows on the disk; labels, shape and caps on this side."""

    folder: Path
    y_test: npt.NDArray[np.bool_]
    shape: Row
    cut: str


def prepare_rows(cell: Cell, loader: Loader, settings: RunSettings, folder: Path) -> PreparedRows:
    """Load, split, cap and scale the rows of a cell, and save them in a new folder inside ``folder``."""
    data = loader(cell.dataset, cell.seed)
    whole = data.split(cell.seed)
    split = cap_split(whole, data.y, cell.seed, settings.max_train, settings.max_test)
    cut = [
        f"{len(part)} of {len(full)} {kind} rows"
        for part, full, kind in ((split.train, whole.train, "training"), (split.test, whole.test, "test"))
        if len(part) < len(full)
    ]
    train, test = scale_columns(data.X[split.train], data.X[split.test], cell.scaling)
    own = Path(tempfile.mkdtemp(dir=folder))
    np.save(own / "train.npy", train)
    np.save(own / "test.npy", test)
    y_test = data.y[split.test]
    shape: Row = {
        "n_train": len(train),
        "n_test": len(test),
        "n_features": train.shape[1],
        "n_anomalies": int(y_test.sum()),
        "duplicate_share": duplicate_share(data.X, data.y, split),
    }
    return PreparedRows(own, y_test, shape, "; ".join(cut))


def run_grid(
    cells: Iterable[Cell],
    store: ResultStore,
    loader: Loader,
    settings: RunSettings | None = None,
    on_row: Callable[[Row], None] | None = None,
    execute: Executor = run_tasks,
    adopt: bool = True,
) -> list[Row]:
    """Measure every cell that the store does not hold yet; return the new rows.

    Parameters
    ----------
    cells : iterable of Cell
        What to measure.
    store : ResultStore
        Where rows go, one by one. Cells with a row are skipped; failed ones too unless ``settings.retry``.
    loader : callable
        ``(name, seed) -> Dataset``.
    settings : RunSettings, optional
        Device, processes, limits.
    on_row : callable, optional
        Called with each row after it is written.
    execute : callable, optional
        Who measures: processes of this machine, or :func:`ptad.benchmark.ray_workers.cluster_executor`.
    adopt : bool
        Take over what another experiment has measured under another name.
    """
    settings = settings or RunSettings()
    stop_at = None if settings.budget is None else time.monotonic() + settings.budget
    # a cluster may have devices that this machine lacks
    device = resolve_device(settings.device) if execute is run_tasks else settings.device
    plan, rows = plan_cells(cells, store, settings), list[Row]()
    if adopt:
        plan, rows = adopt_equal_cells(plan, store, device)
    waiting = Counter(cell.group for cell, _ in plan)
    prepared: dict[Any, PreparedRows] = {}
    known = versions()

    def write(base: Row, result: Row) -> None:
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        row = {**base, **result, "versions": known, "finished_at": finished}
        store.append(row)
        rows.append(row)
        if on_row is not None:
            on_row(row)

    def source(scratch: Path, cell: Cell, base: Row) -> Task | None:
        try:
            if cell.group not in prepared:
                prepared[cell.group] = prepare_rows(cell, loader, settings, scratch)
        except DataError as error:
            write(base, {"status": "skipped", "reason": str(error)})
            return None
        paths = (prepared[cell.group].folder / name for name in ("train.npy", "test.npy"))
        return Task(cell.method, dict(cell.settings), cell.seed, settings.device, *paths)

    def on_outcome(number: int, outcome: Outcome, status: str) -> None:
        cell, base = plan[number]
        found = _evaluated(outcome, status, prepared[cell.group])
        write(base, {**prepared[cell.group].shape, **found})
        logger.info("%s: %s %s", cell.label, found["status"], found["reason"])
        waiting[cell.group] -= 1
        if not waiting[cell.group]:  # no cell needs the rows any more
            shutil.rmtree(prepared.pop(cell.group).folder, ignore_errors=True)

    if plan:
        with tempfile.TemporaryDirectory(prefix="ptad-benchmark-") as scratch:
            execute(
                ((number, partial(source, Path(scratch), *item)) for number, item in enumerate(plan)),
                on_outcome,
                n_workers=min(settings.jobs, len(plan)),
                n_threads=settings.threads,
                time_limit=settings.time_limit,
                cells_per_worker=settings.cells_per_worker,
                stop_at=stop_at,
            )
    return rows


def _evaluated(outcome: Outcome, status: str, rows: PreparedRows) -> Row:
    """Figures from the scores and the labels, which only this side has."""
    if outcome.error or outcome.scores is None:
        return {"status": status, "reason": outcome.error}
    cost = {name: getattr(outcome, name) for name in (*COST_COLUMNS, "device")}
    cost = {name: value for name, value in cost.items() if value is not None}
    try:
        figures: Row = dict(evaluate(rows.y_test, outcome.scores))
    except DataError as error:
        return {"status": "failed", "reason": str(error), **cost}
    if outcome.p_values is not None:
        figures |= observed_false_alarms(rows.y_test, outcome.p_values, rows.shape["n_train"])
    capped = "; ".join(reason for reason in (rows.cut, outcome.capped) if reason)
    return {"status": "capped" if capped else "ok", "reason": capped, **figures, **cost}
