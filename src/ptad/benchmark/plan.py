"""The cells of a grid, and which of them are still to be measured.

Methods, seeds and scalings can also be given as comma-separated lists, as on the command line.
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
from ptad.benchmark.results import MEASURED, ResultsFile, Row, cell_key
from ptad.errors import SettingError, UserError

#: Names for several methods.
METHOD_GROUPS = {
    "all": tuple(PEERS),
    "paper": (*PAPER_PEERS, "ptad", "ptad-paper"),
    "cheap": CHEAP_PEERS,
    "deep": DEEP_PEERS,
}


@dataclass(frozen=True)
class Variant:
    """A row of a table of results: a method with its settings."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A method with its settings, a table, a seed and a scaling.

    ``experiment`` and ``variant`` identify the rows of several experiments in one file; the main comparison is the
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
        """The key that cells with the same prepared rows share."""
        return self.dataset, self.seed, self.scaling


@dataclass(frozen=True)
class RunSettings:
    """How to run a grid.

    Only the row caps and the device affect the results; both are recorded in the rows. ``large_first`` sorts the cells
    by the size of their table, so that no long one starts last.
    """

    device: str = "cpu"
    jobs: int = 1
    time_limit: float | None = None
    max_train: int | None = None
    max_test: int | None = None
    retry: bool = False
    large_first: bool = True

    def __post_init__(self) -> None:
        for name, low in {"jobs": 1, "max_train": 4, "max_test": 2, "time_limit": 0}.items():
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
    """Return all cells of an experiment; a variant with its own scaling has one cell per table and seed, not two."""
    with_scalings = [(v, (OWN,) if make_peer(v.method, **v.settings).own_scaling else scalings) for v in variants]
    return [
        Cell(variant.method, dataset, seed, scaling, dict(variant.settings), experiment, variant.name)
        for dataset in datasets
        for seed in seeds
        for variant, variant_scalings in with_scalings
        for scaling in variant_scalings
    ]


def make_grid(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    scalings: Sequence[str] = SCALINGS,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """Return all cells of the main comparison; ``settings`` are those of :attr:`Collection.settings`, by method."""
    variants = [Variant(method, method, (settings or {}).get(method, {})) for method in methods]
    return make_cells(variants, datasets, seeds, scalings)


def config_hash(method: str, params: Mapping[str, Any], max_train: int | None, max_test: int | None) -> str:
    """Return twelve digits for everything that affects a cell's results besides table, seed and scaling."""
    content = json.dumps([method, dict(params), max_train, max_test], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def plan_cells(cells: Iterable[Cell], results: ResultsFile, settings: RunSettings) -> list[tuple[Cell, Row]]:
    """Return the cells without a row in the results, each with the columns that are known before it is measured."""
    done = {cell_key(row) for row in results.read() if row["status"] in MEASURED or not settings.retry}
    plan = []
    params_by_setup: dict[str, dict[str, Any]] = {}  # thousands of cells share a few setups
    for cell in cells:
        setup = json.dumps([cell.method, dict(cell.settings)], sort_keys=True, default=str)
        if setup not in params_by_setup:
            try:
                params_by_setup[setup] = make_peer(cell.method, **cell.settings).params()
            except UserError as error:
                raise SettingError(f"{cell.variant or cell.method} on {cell.dataset}: {error}") from error
        params = params_by_setup[setup]
        row: Row = {
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
        if cell_key(row) not in done:
            plan.append((cell, row))
    if settings.large_first:
        sizes = {name: info.rows * info.columns for name, info in catalogue().items()}
        plan.sort(key=lambda item: (-sizes.get(item[0].dataset, 0), *item[0].group))
    return plan


def copy_equal_cells(
    plan: list[tuple[Cell, Row]], results: ResultsFile, device: str
) -> tuple[list[tuple[Cell, Row]], list[Row]]:
    """Copy the rows of cells that another experiment has measured under another name; return the rest and the copies.

    The experiments overlap: the full method is a variant of four of them. Method, settings, table, scaling, seed and
    kind of device determine the scores of a cell.
    """

    def identity(row: Row, on_cpu: bool) -> tuple[Any, ...]:
        return (*(str(row[name]) for name in ("method", "config_hash", "dataset", "scaling", "seed")), on_cpu)

    measured = {identity(row, row["device"] == "cpu"): row for row in results.read() if row["status"] in MEASURED}
    rest, copies = [], []
    for cell, row in plan:
        equal = measured.get(identity(row, device == "cpu"))
        if equal is None:
            rest.append((cell, row))
        else:
            copies.append({**equal, "experiment": row["experiment"], "variant": row["variant"]})
            results.append(copies[-1])
    return rest, copies


def parse_methods(text: str) -> list[str]:
    """Parse names of methods and of :data:`METHOD_GROUPS`; an unknown one lists the choices."""
    methods: list[str] = []
    for name in _split_list(text, "method"):
        # PyOD detectors may be written in any case; their own spelling makes them one method.
        methods += METHOD_GROUPS[name] if name in METHOD_GROUPS else [make_peer(name).name]
    return list(dict.fromkeys(methods))


def parse_seeds(text: str) -> list[int]:
    """Parse seeds such as ``3``, ``0-4`` or ``0,2,7``, in any mixture."""
    seeds: list[int] = []
    for part in _split_list(text, "seed"):
        first, dash, last = part.partition("-")
        try:
            low = int(first)
            high = int(last) if dash else low
        except ValueError as error:
            raise SettingError(f"Seeds are written like 0-4 or 0,2,7. Got {text!r} instead.") from error
        if low > high:
            raise SettingError(f"The range of seeds {part!r} is descending. Write the smaller number first.")
        seeds.extend(range(low, high + 1))
    return list(dict.fromkeys(seeds))


def parse_scalings(text: str) -> list[str]:
    """Parse names of scalings."""
    names = _split_list(text, "scaling")
    for name in names:
        if name not in SCALINGS:
            raise SettingError(f"There is no scaling {name!r}. Choose from: {', '.join(SCALINGS)}.")
    return names


def _split_list(text: str, kind: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise SettingError(f"Name at least one {kind}.")
    return list(dict.fromkeys(names))
