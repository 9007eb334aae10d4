"""Measure a grid of cells: prepare the rows, hand them to workers, evaluate the scores, write one row per cell."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ptad.arrays import Mask
from ptad.benchmark.encoding import scale_columns
from ptad.benchmark.loading import Dataset, cap_split, duplicate_share
from ptad.benchmark.measurement import Outcome, Task, versions
from ptad.benchmark.metrics import evaluate, observed_false_alarms
from ptad.benchmark.plan import Cell, RunSettings, copy_equal_cells, plan_cells
from ptad.benchmark.results import COST_COLUMNS, ResultsFile, Row
from ptad.benchmark.workers import Executor, run_tasks
from ptad.devices import resolve_device
from ptad.errors import DataError

#: ``(name, seed) -> Dataset``; synthetic tables depend on the seed.
Loader = Callable[[str, int], Dataset]


@dataclass(frozen=True)
class PreparedRows:
    """Rows that all cells of one table, seed and scaling share; workers read them from ``folder``, without labels."""

    folder: Path
    y_test: Mask
    shape: Row
    capped: str  # which rows were left out; empty if none


def prepare_rows(cell: Cell, loader: Loader, settings: RunSettings, scratch: Path) -> PreparedRows:
    """Load, split, cap and scale the rows of a cell, and save them in a new folder inside ``scratch``."""
    data = loader(cell.dataset, cell.seed)
    full = data.split(cell.seed)
    split = cap_split(full, data.y, cell.seed, settings.max_train, settings.max_test)
    capped = [
        f"{len(part)} of {len(full_part)} {kind} rows"
        for part, full_part, kind in ((split.train, full.train, "training"), (split.test, full.test, "test"))
        if len(part) < len(full_part)
    ]
    train, test = scale_columns(data.X[split.train], data.X[split.test], cell.scaling)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    np.save(folder / "train.npy", train)
    np.save(folder / "test.npy", test)
    y_test = data.y[split.test]
    shape: Row = {
        "n_train": len(train),
        "n_test": len(test),
        "n_features": train.shape[1],
        "n_anomalies": int(y_test.sum()),
        "duplicate_share": duplicate_share(data.X, data.y, split),
    }
    return PreparedRows(folder, y_test, shape, "; ".join(capped))


def run_grid(
    cells: Iterable[Cell],
    results: ResultsFile,
    loader: Loader,
    settings: RunSettings | None = None,
    on_row: Callable[[Row], None] | None = None,
    execute: Executor = run_tasks,
) -> list[Row]:
    """Measure every cell that the results do not hold yet, append its row to them, and return the new rows.

    Failed cells are measured again only with ``settings.retry``. ``on_row`` is called with each row after it is
    written. ``execute`` runs the tasks: on this machine, or :func:`ptad.benchmark.ray_workers.cluster_executor`.
    """
    settings = settings or RunSettings()
    # a cluster may have devices that this machine lacks
    device = resolve_device(settings.device) if execute is run_tasks else settings.device
    plan, rows = copy_equal_cells(plan_cells(cells, results, settings), results, device)
    n_pending = Counter(cell.group for cell, _ in plan)
    prepared: dict[tuple[str, int, str], PreparedRows] = {}

    def write(row: Row) -> None:
        finished_at = datetime.now(UTC).isoformat(timespec="seconds")
        rows.append({**row, "versions": versions(), "finished_at": finished_at})
        results.append(rows[-1])
        if on_row is not None:
            on_row(rows[-1])

    def tasks(scratch: Path) -> Iterator[tuple[int, Task]]:
        for number, (cell, row) in enumerate(plan):
            if cell.group not in prepared:
                try:
                    prepared[cell.group] = prepare_rows(cell, loader, settings, scratch)
                except DataError as error:
                    write({**row, "status": "skipped", "reason": str(error)})
                    continue
            paths = (prepared[cell.group].folder / name for name in ("train.npy", "test.npy"))
            yield number, Task(cell.method, dict(cell.settings), cell.seed, settings.device, *paths)

    def on_outcome(number: int, outcome: Outcome) -> None:
        cell, row = plan[number]
        rows_of_cell = prepared[cell.group]
        write({**row, **rows_of_cell.shape, **_evaluate_outcome(outcome, rows_of_cell)})
        n_pending[cell.group] -= 1
        if not n_pending[cell.group]:
            shutil.rmtree(prepared.pop(cell.group).folder, ignore_errors=True)

    if plan:
        with tempfile.TemporaryDirectory(prefix="ptad-benchmark-") as scratch:
            n_workers = min(settings.jobs, len(plan))
            execute(tasks(Path(scratch)), on_outcome, n_workers=n_workers, time_limit=settings.time_limit)
    return rows


def _evaluate_outcome(outcome: Outcome, rows: PreparedRows) -> Row:
    """Compute the metrics here, since workers have no labels."""
    if outcome.scores is None:
        return {"status": outcome.status, "reason": outcome.reason}
    cost = {name: getattr(outcome, name) for name in (*COST_COLUMNS, "device")}
    try:
        metrics: Row = dict(evaluate(rows.y_test, outcome.scores))
    except DataError as error:
        return {"status": "failed", "reason": str(error), **cost}
    if outcome.p_values is not None:
        metrics |= observed_false_alarms(rows.y_test, outcome.p_values, rows.shape["n_train"])
    reasons = "; ".join(reason for reason in (rows.capped, outcome.capped) if reason)
    return {"status": "capped" if reasons else "ok", "reason": reasons, **metrics, **cost}
