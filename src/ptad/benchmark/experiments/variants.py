"""What an experiment is: named variants of methods on some tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptad.benchmark.measurement import Cell
from ptad.benchmark.peers import make_peer
from ptad.benchmark.plan import RunSettings
from ptad.benchmark.results import Results
from ptad.benchmark.runner import Loader, run_grid
from ptad.benchmark.scaling import OWN, SCALINGS
from ptad.benchmark.tables import Table

#: The four tables of the paper's figures on counts and weights.
FOUR_TABLES = ("campaign", "cardio", "wbc", "thyroid")


@dataclass(frozen=True)
class Variant:
    """A row of an experiment's table: a method with settings of its own."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def paper_variant(name: str, **network: Any) -> Variant:
    """PTAD's paper preset with some settings of its network replaced."""
    config = {f"network.{key}": value for key, value in network.items()}
    return Variant(name, "ptad-paper", {"config": config} if config else {})


@dataclass(frozen=True)
class Experiment:
    """A grid of variants and tables.

    Attributes
    ----------
    name, title : str
        On the command line, and in words.
    variants : tuple of Variant
        What is compared.
    datasets : tuple of str
        Where; all tables of the collection when empty.
    make_loader : callable, optional
        From the collection's loader to one that understands the names of ``datasets``.
    further : callable, optional
        ``(data folder, output file, settings) -> tables`` of what is measured besides accuracy; written as
        ``NAME.csv`` beside the output file.
    page : callable, optional
        From the results to what its page shows, in place of averages over the paper's tables.
    run : callable
        Measures the cells: :func:`ptad.benchmark.runner.run_grid`, or something that takes and gives the same.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    datasets: tuple[str, ...] = ()
    make_loader: Callable[[Loader], Loader] | None = None
    further: Callable[[Path, Path, RunSettings], list[Table]] | None = None
    page: Callable[[Results], str] | None = None
    run: Callable[..., Any] = run_grid


def make_cells(experiment: Experiment, seeds: Sequence[int], datasets: Sequence[str]) -> list[Cell]:
    """All cells of an experiment; variants without a scaling of their own run under both."""
    cells = []
    own = {v.name: make_peer(v.method, **v.settings).own_scaling for v in experiment.variants}
    for dataset in datasets:
        for seed in seeds:
            for variant in experiment.variants:
                for scaling in (OWN,) if own[variant.name] else SCALINGS:
                    settings = dict(variant.settings)
                    cells.append(Cell(variant.method, dataset, seed, scaling, settings, experiment.name, variant.name))
    return cells
