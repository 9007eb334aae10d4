"""What a run has to measure: the cells of a grid that the results do not hold yet, and how to go about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.measurement import Cell, config_hash
from ptad.benchmark.peers import make_peer
from ptad.benchmark.scaling import OWN, SCALINGS
from ptad.benchmark.store import MEASURED, ResultStore, Row, cell_key
from ptad.errors import SettingError, UserError


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
    cells_per_worker: int = 500
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


def plan_cells(cells: Iterable[Cell], store: ResultStore, settings: RunSettings) -> list[tuple[Cell, Row]]:
    """The cells still to be measured with what is known of their rows, large tables first unless told otherwise."""
    done = {cell_key(row) for row in store.read() if row["status"] in MEASURED or not settings.retry}
    plan = []
    known: dict[str, dict[str, Any]] = {}
    for cell in cells:
        setup = json.dumps([cell.method, dict(cell.settings)], sort_keys=True, default=str)
        if setup not in known:  # thousands of cells share a few setups
            try:
                known[setup] = make_peer(cell.method, **cell.settings).params()
            except UserError as error:
                raise SettingError(f"{cell.label}: {error}") from error
        params = known[setup]
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


def adopt_twins(
    plan: list[tuple[Cell, Row]], store: ResultStore, device: str
) -> tuple[list[tuple[Cell, Row]], list[Row]]:
    """Write the rows of cells that another experiment has measured under another name; return what is left.

    The experiments overlap: the whole method is a row of four of them. A cell's scores are fixed by method, settings,
    table, scaling, seed and kind of device, so the row of such a cell is its own.
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
