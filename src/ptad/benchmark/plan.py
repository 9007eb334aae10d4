"""What a run has to measure: the cells of a grid that the results do not hold yet, and how to go about them.

Methods, seeds and scalings are also understood as lists of words, as on the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptad.benchmark.collections import catalogue
from ptad.benchmark.encoding import OWN, SCALINGS
from ptad.benchmark.peers import CHEAP_PEERS, DEEP_PEERS, PAPER_PEERS, PEERS, make_peer
from ptad.benchmark.store import MEASURED, ResultStore, Row, cell_key
from ptad.errors import SettingError, UserError

#: Words that stand for several methods.
METHOD_GROUPS = {
    "all": tuple(PEERS),
    "paper": (*PAPER_PEERS, "ptad", "ptad-paper"),
    "cheap": CHEAP_PEERS,
    "deep": DEEP_PEERS,
}


@dataclass(frozen=True)
class Variant:
    """A row of a comparison's table: a method with settings of its own."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A method, its settings, a table, a seed and a scaling.

    ``experiment`` and ``variant`` tell the rows of different studies in one file apart; the main comparison is
    experiment ``main`` with the method's name as variant.
    """

    method: str
    dataset: str
    seed: int
    scaling: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    experiment: str = "main"
    variant: str = ""

    @property
    def group(self) -> tuple[str, int, str]:
        """What cells with the same rows share."""
        return self.dataset, self.seed, self.scaling

    @property
    def label(self) -> str:
        """For logs."""
        return f"{self.variant or self.method} on {self.dataset}, seed {self.seed}, {self.scaling}"


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
        lowest = {"jobs": 1, "threads": 1, "cells_per_worker": 1, "max_train": 4, "max_test": 2}
        for name, low in (lowest | {"time_limit": 0, "budget": 0}).items():
            value = getattr(self, name)
            if value is not None and (value < low or value == 0):
                least = f"at least {low}" if low else "above 0 seconds"
                raise SettingError(f"The '{name}' setting must be {least}. Got {value} instead.")


def make_cells(
    variants: Iterable[Variant],
    datasets: Sequence[str],
    seeds: Sequence[int],
    scalings: Sequence[str] = SCALINGS,
    experiment: str = "main",
) -> list[Cell]:
    """All cells of an experiment; a variant with its own scaling has one cell per table and seed, not two."""
    ways = [(v, (OWN,) if make_peer(v.method, **v.settings).own_scaling else scalings) for v in variants]
    return [
        Cell(variant.method, dataset, seed, scaling, dict(variant.settings), experiment, variant.name)
        for dataset in datasets
        for seed in seeds
        for variant, own in ways
        for scaling in own
    ]


def make_grid(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    scalings: Sequence[str] = SCALINGS,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """All cells of the main comparison; ``settings`` of methods are those that a collection asks for."""
    variants = [Variant(method, method, (settings or {}).get(method, {})) for method in methods]
    return make_cells(variants, datasets, seeds, scalings)


def config_hash(method: str, params: Mapping[str, Any], max_train: int | None, max_test: int | None) -> str:
    """Twelve digits that stand for everything that decides a cell's figures besides table, seed and scaling."""
    content = json.dumps([method, dict(params), max_train, max_test], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


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
    if settings.large_first:
        sizes = {name: info.rows * info.columns for name, info in catalogue().items()}
        plan.sort(key=lambda item: (-sizes.get(item[0].dataset, 0), *item[0].group))
    return plan


def adopt_equal_cells(
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
        equal = known.get(identity(base, device == "cpu"))
        if equal is None:
            left.append((cell, base))
        else:
            adopted.append({**equal, "experiment": base["experiment"], "variant": base["variant"]})
            store.append(adopted[-1])
    return left, adopted


def parse_methods(text: str) -> list[str]:
    """Names and words such as ``cheap``; unknown ones list the choices."""
    found: list[str] = []
    for word in _names(text, "method"):
        # A detector of PyOD may be written in any case; its own spelling makes it one method.
        found += METHOD_GROUPS[word] if word in METHOD_GROUPS else [make_peer(word).name]
    return list(dict.fromkeys(found))


def parse_seeds(text: str) -> list[int]:
    """``3``, ``0-4`` or ``0,2,7``, in any mixture."""
    seeds: list[int] = []
    for part in _names(text, "seed"):
        first, dash, last = part.partition("-")
        try:
            low = int(first)
            high = int(last) if dash else low
        except ValueError as error:
            raise SettingError(f"Seeds are written like 0-4 or 0,2,7. Got {text!r} instead.") from error
        if low > high:
            raise SettingError(f"The seeds {part!r} run backwards.")
        seeds.extend(range(low, high + 1))
    return list(dict.fromkeys(seeds))


def parse_scalings(text: str) -> list[str]:
    """Names of scalings."""
    names = _names(text, "scaling")
    for name in names:
        if name not in SCALINGS:
            raise SettingError(f"There is no scaling {name!r}. Choose from: {', '.join(SCALINGS)}.")
    return names


def _names(text: str, kind: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise SettingError(f"Name at least one {kind}.")
    return list(dict.fromkeys(names))
