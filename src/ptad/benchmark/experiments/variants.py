"""What an experiment is: named variants of methods on some tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.cell import Cell
from ptad.benchmark.runner import Loader, RunSettings, folder_loader
from ptad.benchmark.scaling import OWN, SCALINGS
from ptad.benchmark.tables import Table
from ptad.peers import make_peer

#: The four tables of the paper's figures on counts and weights.
FOUR_TABLES = ("campaign", "cardio", "wbc", "thyroid")


def all_tables() -> tuple[str, ...]:
    """Every table of the catalogue."""
    return tuple(catalogue())


@dataclass(frozen=True)
class Variant:
    """A row of an experiment's table: a method with settings of its own."""

    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def paper_variant(name: str, **config: Any) -> Variant:
    """PTAD's paper preset with some fields of its configuration replaced."""
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
        Where; names that the loader understands.
    make_loader : callable
        From the data folder to a loader of those names.
    further : callable, optional
        ``(data folder, output file, settings) -> tables`` of what is measured besides accuracy; written as
        ``NAME.csv`` beside the output file.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    datasets: tuple[str, ...]
    make_loader: Callable[[Path], Loader] = folder_loader
    further: Callable[[Path, Path, RunSettings], list[Table]] | None = None


def make_cells(experiment: Experiment, seeds: Sequence[int], datasets: Sequence[str] | None = None) -> list[Cell]:
    """All cells of an experiment; variants without a scaling of their own run under both."""
    cells = []
    for variant in experiment.variants:
        own = make_peer(variant.method, **variant.settings).own_scaling
        for dataset in datasets or experiment.datasets:
            for seed in seeds:
                for scaling in (OWN,) if own else SCALINGS:
                    settings = dict(variant.settings)
                    cells.append(Cell(variant.method, dataset, seed, scaling, settings, experiment.name, variant.name))
    return cells
