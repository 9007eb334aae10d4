"""Measure a grid of cells: prepare the rows, hand them to workers, evaluate the scores, write one row per cell."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ptad.benchmark.encoding import scale_columns
from ptad.benchmark.loading import Dataset
from ptad.benchmark.measurement import Outcome, Task, versions
from ptad.benchmark.metrics import evaluate, observed_false_alarms
from ptad.benchmark.plan import Cell, RunSettings, adopt_equal_cells, plan_cells
from ptad.benchmark.split import cap_split, duplicate_share
from ptad.benchmark.store import COST_COLUMNS, ResultStore, Row
from ptad.benchmark.workers import Executor, run_tasks
from ptad.devices import resolve_device
from ptad.errors import DataError

logger = logging.getLogger(__name__)

#: Gives a table by its name and the seed of the cell; synthetic tables differ with the seed.
Loader = Callable[[str, int], Dataset]


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
        "duplicate_share": duplicate_share(data.X, data.y, split),
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
    plan, adopted = adopt_equal_cells(plan_cells(cells, store, settings), store, device)
    writer = RowWriter(store, on_row)
    with tempfile.TemporaryDirectory(prefix="ptad-benchmark-") as scratch:
        groups = _Groups(plan, loader, settings, Path(scratch))

        def source(cell: Cell, base: Row) -> Task | None:
            try:
                folder, _ = groups.of(cell)
            except DataError as error:
                writer.write(base, {"status": "skipped", "reason": str(error)})
                groups.release(cell)
                return None
            paths = (folder / "train.npy", folder / "test.npy")
            return Task(cell.method, dict(cell.settings), cell.seed, settings.device, *paths)

        def on_outcome(number: int, outcome: Outcome, status: str) -> None:
            cell, base = plan[number]
            _, rows = groups.of(cell)
            row = writer.write(base, {**rows.shape, **_evaluated(outcome, status, rows)})
            logger.info("%s: %s %s", cell.label, row["status"], row["reason"])
            groups.release(cell)

        if plan:
            execute(
                ((number, partial(source, *item)) for number, item in enumerate(plan)),
                on_outcome,
                n_workers=min(settings.jobs, len(plan)),
                n_threads=settings.threads,
                time_limit=settings.time_limit,
                cells_per_worker=settings.cells_per_worker,
                stop_at=stop_at,
            )
    return [*adopted, *writer.rows]


class RowWriter:
    """Completes rows with versions and time, writes them, and tells who asked."""

    def __init__(self, store: ResultStore, on_row: Callable[[Row], None] | None = None) -> None:
        self.store = store
        self.on_row = on_row
        self.rows: list[Row] = []
        self._versions = versions()

    def write(self, base: Row, result: Row) -> Row:
        """Write one row and return it."""
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        row = {**base, **result, "versions": self._versions, "finished_at": finished}
        self.store.append(row)
        self.rows.append(row)
        if self.on_row is not None:
            self.on_row(row)
        return row


class _Groups:
    """The rows that all cells of one table, seed and scaling share: on the disk while a cell needs them."""

    def __init__(self, plan: list[tuple[Cell, Row]], loader: Loader, settings: RunSettings, scratch: Path) -> None:
        self._loader, self._settings, self._scratch = loader, settings, scratch
        self._waiting = Counter(_group(cell) for cell, _ in plan)
        self._known: dict[tuple[str, int, str], tuple[Path, PreparedRows]] = {}

    def of(self, cell: Cell) -> tuple[Path, PreparedRows]:
        """The folder of the rows of a cell, and the rest of what is known of them."""
        if _group(cell) not in self._known:
            rows = prepare_rows(cell, self._loader, self._settings)
            folder = Path(tempfile.mkdtemp(dir=self._scratch))
            np.save(folder / "train.npy", rows.train)
            np.save(folder / "test.npy", rows.test)
            nothing = np.empty((0, 0), np.float32)
            self._known[_group(cell)] = folder, replace(rows, train=nothing, test=nothing)
        return self._known[_group(cell)]

    def release(self, cell: Cell) -> None:
        """Delete rows that no cell needs any more."""
        self._waiting[_group(cell)] -= 1
        if not self._waiting[_group(cell)] and _group(cell) in self._known:
            shutil.rmtree(self._known.pop(_group(cell))[0], ignore_errors=True)


def _group(cell: Cell) -> tuple[str, int, str]:
    return cell.dataset, cell.seed, cell.scaling


def _evaluated(outcome: Outcome, status: str, rows: PreparedRows) -> Row:
    """Figures from the scores and the labels, which only this side has."""
    if outcome.error or outcome.scores is None:
        return {"status": status, "reason": outcome.error}
    cost = {name: getattr(outcome, name) for name in (*COST_COLUMNS, "device")}
    try:
        figures: Row = dict(evaluate(rows.y_test, outcome.scores))
    except DataError as error:
        return {"status": "failed", "reason": str(error), **cost}
    if outcome.p_values is not None:
        figures |= observed_false_alarms(rows.y_test, outcome.p_values, rows.shape["n_train"])
    capped = "; ".join(reason for reason in (rows.cut, outcome.capped) if reason)
    return {"status": "capped" if capped else "ok", "reason": capped, **figures, **cost}
