"""Measure a grid of cells: prepare the rows, hand them to workers, judge the scores, write one row per cell."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.cell import Cell, Outcome, Task, config_hash, versions
from ptad.benchmark.loading import Dataset, load_dataset
from ptad.benchmark.metrics import evaluate
from ptad.benchmark.scaling import OWN, SCALINGS, scale_columns
from ptad.benchmark.split import cap_split, half_split, twin_share
from ptad.benchmark.store import MEASURED, ResultStore, Row, cell_key
from ptad.benchmark.workers import Executor, TaskSource, run_tasks
from ptad.devices import resolve_device
from ptad.errors import DataError, SettingError, UserError
from ptad.peers import make_peer

logger = logging.getLogger(__name__)

#: Gives a table by its name and the seed of the cell; synthetic tables differ with the seed.
Loader = Callable[[str, int], Dataset]


@dataclass(frozen=True)
class RunSettings:
    """How to run a grid; none of it changes a figure, save the row caps, which are recorded.

    ``budget`` ends the whole run after so many seconds: what is unfinished then stays unmeasured and is left to the
    next run. ``large_first`` keeps one long cell from starting last; without it the order of the cells counts.
    """

    device: str = "cpu"
    jobs: int = 1
    threads: int = 1  # per worker; small nets are slower with more
    time_limit: float | None = None
    max_train: int | None = None
    max_test: int | None = None
    cells_per_worker: int = 25
    retry: bool = False
    budget: float | None = None
    large_first: bool = True

    def __post_init__(self) -> None:
        for name, low in (("jobs", 1), ("threads", 1), ("cells_per_worker", 1), ("max_train", 4), ("max_test", 2)):
            value = getattr(self, name)
            if value is not None and value < low:
                raise SettingError(f"The '{name}' setting must be at least {low}. Got {value} instead.")
        for name in ("time_limit", "budget"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise SettingError(f"The '{name}' setting must be above 0 seconds. Got {value} instead.")


def folder_loader(directory: Path) -> Loader:
    """A loader of the catalogue's tables from a folder; the seed has no say.

    The last few tables stay in memory: a grid asks for the same one for every seed and scaling.
    """
    load = lru_cache(maxsize=4)(load_dataset)
    return lambda name, seed: load(directory, name)


def make_grid(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    scalings: Sequence[str] = SCALINGS,
) -> list[Cell]:
    """All cells of the main comparison; a method with its own scaling has one cell per table and seed, not two."""
    cells = []
    own = {method: make_peer(method).own_scaling for method in methods}
    for dataset in datasets:
        for seed in seeds:
            for method in methods:
                for scaling in (OWN,) if own[method] else scalings:
                    cells.append(Cell(method, dataset, seed, scaling, variant=method))
    return cells


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
        data = self.loader(cell.dataset, cell.seed)
        limits = self.settings
        whole = half_split(data.y, cell.seed)
        split = cap_split(whole, data.y, cell.seed, limits.max_train, limits.max_test)
        cut = [
            f"{len(part)} of {len(full)} {kind} rows"
            for part, full, kind in ((split.train, whole.train, "training"), (split.test, whole.test, "test"))
            if len(part) < len(full)
        ]
        train, test = scale_columns(data.X[split.train], data.X[split.test], cell.scaling)
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        np.save(folder / "train.npy", train)
        np.save(folder / "test.npy", test)
        y_test = data.y[split.test]
        shape: Row = {
            "n_train": len(train),
            "n_test": len(test),
            "n_features": train.shape[1],
            "n_anomalies": int(y_test.sum()),
            "twin_share": twin_share(data.X, data.y, split),
        }
        return _Group(folder, y_test, shape, "; ".join(cut))


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
        Where rows go, one by one. Cells with a row are left out; failed ones too unless ``settings.retry``.
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
    plan, rows = _adopt_twins(_plan(cells, store, settings), store, device)
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


def _plan(cells: Iterable[Cell], store: ResultStore, settings: RunSettings) -> list[tuple[Cell, Row]]:
    """The cells still to be measured with what is known of their rows, large tables first unless told otherwise."""
    done = {cell_key(row) for row in store.read() if row["status"] in MEASURED or not settings.retry}
    plan = []
    for cell in cells:
        try:
            params = make_peer(cell.method, random_state=cell.seed, **cell.settings).params()
        except UserError as error:
            raise SettingError(f"{cell.label}: {error}") from error
        base: Row = {
            "experiment": cell.experiment,
            "variant": cell.variant or cell.method,
            "method": cell.method,
            "dataset": cell.dataset,
            "seed": cell.seed,
            "scaling": cell.scaling,
            "config_hash": config_hash(cell.method, params, settings.max_train, settings.max_test),
            "max_train": settings.max_train,
            "max_test": settings.max_test,
            "device": settings.device,
            "settings": json.dumps(params, sort_keys=True, default=str),
        }
        if cell_key(base) not in done:
            plan.append((cell, base))
    if not settings.large_first:
        return plan
    return sorted(plan, key=lambda item: (-_size(item[0].dataset), item[0].dataset, item[0].seed, item[0].scaling))


def _adopt_twins(
    plan: list[tuple[Cell, Row]], store: ResultStore, device: str
) -> tuple[list[tuple[Cell, Row]], list[Row]]:
    """Write the rows of cells that another experiment has measured under another name; return what is left.

    The experiments overlap: the whole method is a row of four of them. A cell's scores are fixed by method, settings,
    table, scaling, seed and kind of device, so the row of its twin is its own.
    """

    def identity(row: Row, on_cpu: bool) -> tuple[Any, ...]:
        return (*(str(row[name]) for name in ("method", "config_hash", "dataset", "scaling", "seed")), on_cpu)

    known = {identity(row, row["device"] == "cpu"): row for row in store.read() if row["status"] in MEASURED}
    left, adopted = [], []
    for cell, base in plan:
        twin = known.get(identity(base, device == "cpu"))
        if twin is None:
            left.append((cell, base))
            continue
        row = {**twin, "experiment": base["experiment"], "variant": base["variant"]}
        store.append(row)
        adopted.append(row)
    return left, adopted


def _size(dataset: str) -> int:
    info = catalogue().get(dataset)
    return info.rows * info.columns if info else 0


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
        figures = evaluate(group.y_test, outcome.scores)
    except DataError as error:
        return {"status": "failed", "reason": str(error), **cost}
    capped = "; ".join(reason for reason in (group.cut, outcome.capped) if reason)
    return {"status": "capped" if capped else "ok", "reason": capped, **figures, **cost}
