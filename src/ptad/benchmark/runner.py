"""Measure a grid of cells: prepare the rows, hand them to workers, evaluate the scores, write one row per cell."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.loading import Dataset
from ptad.benchmark.measurement import Cell, Outcome, Task, versions
from ptad.benchmark.metrics import evaluate, observed_false_alarms
from ptad.benchmark.plan import RunSettings, adopt_twins, plan_cells
from ptad.benchmark.scaling import scale_columns
from ptad.benchmark.split import cap_split, twin_share
from ptad.benchmark.store import ResultStore, Row
from ptad.benchmark.workers import Executor, TaskSource, run_tasks
from ptad.devices import resolve_device
from ptad.errors import DataError

logger = logging.getLogger(__name__)

#: Gives a table by its name and the seed of the cell; synthetic tables differ with the seed.
Loader = Callable[[str, int], Dataset]


@dataclass
class _Group:
    """The rows that all cells of one table, seed and scaling share."""

    folder: Path
    y_test: npt.NDArray[np.bool_]
    shape: Row
    cut: str = ""


@dataclass
class _Run:
    """The state of one call of :func:`run_grid`."""

    store: ResultStore
    loader: Loader
    settings: RunSettings
    scratch: Path
    groups: dict[tuple[str, int, str], _Group] = field(default_factory=dict)
    waiting: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def group(self, cell: Cell) -> _Group:
        key = (cell.dataset, cell.seed, cell.scaling)
        if key not in self.groups:
            self.groups[key] = self._prepare(cell)
        return self.groups[key]

    def release(self, cell: Cell) -> None:
        """Delete rows that no cell needs any more."""
        key = (cell.dataset, cell.seed, cell.scaling)
        self.waiting[key] -= 1
        if self.waiting[key] == 0 and key in self.groups:
            shutil.rmtree(self.groups.pop(key).folder, ignore_errors=True)

    def _prepare(self, cell: Cell) -> _Group:
        rows = prepare_rows(cell, self.loader, self.settings)
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        np.save(folder / "train.npy", rows.train)
        np.save(folder / "test.npy", rows.test)
        return _Group(folder, rows.y_test, rows.shape, rows.cut)


@dataclass(frozen=True)
class PreparedRows:
    """Scaled rows of a cell, the labels, what the results say of their shape, and which caps they met."""

    train: npt.NDArray[np.float32]
    test: npt.NDArray[np.float32]
    y_test: npt.NDArray[np.bool_]
    shape: Row
    cut: str


def prepare_rows(cell: Cell, loader: Loader, settings: RunSettings) -> PreparedRows:
    """Load, split, cap and scale the rows of a cell."""
    data = loader(cell.dataset, cell.seed)
    whole = data.split(cell.seed)
    split = cap_split(whole, data.y, cell.seed, settings.max_train, settings.max_test)
    cut = [
        f"{len(part)} of {len(full)} {kind} rows"
        for part, full, kind in ((split.train, whole.train, "training"), (split.test, whole.test, "test"))
        if len(part) < len(full)
    ]
    train, test = scale_columns(data.X[split.train], data.X[split.test], cell.scaling)
    y_test = data.y[split.test]
    shape: Row = {
        "n_train": len(train),
        "n_test": len(test),
        "n_features": train.shape[1],
        "n_anomalies": int(y_test.sum()),
        "twin_share": twin_share(data.X, data.y, split),
    }
    return PreparedRows(train, test, y_test, shape, "; ".join(cut))


def run_grid(
    cells: Iterable[Cell],
    store: ResultStore,
    loader: Loader,
    settings: RunSettings | None = None,
    on_row: Callable[[Row], None] | None = None,
    execute: Executor = run_tasks,
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
    """
    settings = settings or RunSettings()
    stop_at = None if settings.budget is None else time.monotonic() + settings.budget
    # a cluster may have devices that this machine lacks
    device = resolve_device(settings.device) if execute is run_tasks else settings.device
    plan, rows = adopt_twins(plan_cells(cells, store, settings), store, device)
    stamp = versions()

    def finish(cell: Cell, base: Row, outcome: Outcome, status: str, group: _Group | None) -> None:
        row = {**base, **(group.shape if group else {}), **_judge(outcome, status, group), "versions": stamp}
        row["finished_at"] = datetime.now(UTC).isoformat(timespec="seconds")
        store.append(row)
        rows.append(row)
        logger.info("%s: %s %s", cell.label, row["status"], row["reason"])
        if on_row is not None:
            on_row(row)

    with tempfile.TemporaryDirectory(prefix="ptad-benchmark-") as scratch:
        run = _Run(store, loader, settings, Path(scratch))
        for cell, _ in plan:
            key = (cell.dataset, cell.seed, cell.scaling)
            run.waiting[key] = run.waiting.get(key, 0) + 1

        def source(number: int) -> TaskSource:
            cell, base = plan[number]

            def make() -> Task | None:
                try:
                    folder = run.group(cell).folder
                except DataError as error:
                    finish(cell, base, Outcome(error=str(error)), "skipped", None)
                    run.release(cell)
                    return None
                paths = (folder / "train.npy", folder / "test.npy")
                return Task(cell.method, dict(cell.settings), cell.seed, settings.device, *paths)

            return make

        def on_outcome(number: int, outcome: Outcome, status: str) -> None:
            cell, base = plan[number]
            finish(cell, base, outcome, status, run.group(cell))
            run.release(cell)

        if plan:
            execute(
                ((number, source(number)) for number in range(len(plan))),
                on_outcome,
                n_workers=min(settings.jobs, len(plan)),
                n_threads=settings.threads,
                time_limit=settings.time_limit,
                cells_per_worker=settings.cells_per_worker,
                stop_at=stop_at,
            )
    return rows


def _judge(outcome: Outcome, status: str, group: _Group | None) -> dict[str, Any]:
    """Figures from the scores and the labels, which only this side has."""
    if outcome.error or outcome.scores is None or group is None:
        return {"status": status, "reason": outcome.error}
    cost = {
        "fit_seconds": outcome.fit_seconds,
        "score_seconds": outcome.score_seconds,
        "peak_rss_mb": outcome.peak_rss_mb,
        "peak_cuda_mb": outcome.peak_cuda_mb,
        "n_parameters": outcome.n_parameters,
        "device": outcome.device,
    }
    try:
        figures: dict[str, float | None] = dict(evaluate(group.y_test, outcome.scores))
    except DataError as error:
        return {"status": "failed", "reason": str(error), **cost}
    if outcome.p_values is not None:
        figures |= observed_false_alarms(group.y_test, outcome.p_values, group.shape["n_train"])
    capped = "; ".join(reason for reason in (group.cut, outcome.capped) if reason)
    return {"status": "capped" if capped else "ok", "reason": capped, **figures, **cost}
