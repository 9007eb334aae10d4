"""The paper's further experiments and those of the default: one file each, one registry, one command.

Most are lists of variants that the ordinary runner measures and the ordinary tables show. ``cost``, ``masks`` and
``typed-tables`` measure something else than accuracy and bring their own function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ptad.benchmark.board import make_board
from ptad.benchmark.collections import Collection
from ptad.benchmark.experiments.ablation import ABLATION
from ptad.benchmark.experiments.anomaly_types import ANOMALY_TYPES
from ptad.benchmark.experiments.backbones import BACKBONES
from ptad.benchmark.experiments.context import CONTEXT
from ptad.benchmark.experiments.cost import cost_tables, read_cost
from ptad.benchmark.experiments.counts import COUNTS
from ptad.benchmark.experiments.default_parts import DEFAULT_PARTS
from ptad.benchmark.experiments.distance import DISTANCE
from ptad.benchmark.experiments.false_alarms import FALSE_ALARMS
from ptad.benchmark.experiments.masks import mask_tables
from ptad.benchmark.experiments.paper_grid import PAPER_GRID
from ptad.benchmark.experiments.typed_tables import read_typed, typed_tables
from ptad.benchmark.experiments.variants import Experiment, make_cells
from ptad.benchmark.experiments.weights import WEIGHTS
from ptad.benchmark.leaderboard import means_table
from ptad.benchmark.plan import RunSettings
from ptad.benchmark.report import experiment_tables
from ptad.benchmark.store import ResultStore, Row
from ptad.benchmark.tables import Table
from ptad.errors import SettingError

__all__ = ["EXPERIMENTS", "MEASUREMENTS", "READERS", "run_experiment", "variant_order"]

#: Experiments that are grids of variants.
EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        *(ABLATION, BACKBONES, COUNTS, WEIGHTS, DISTANCE, ANOMALY_TYPES, CONTEXT),
        *(DEFAULT_PARTS, FALSE_ALARMS, PAPER_GRID),
    )
}
#: Experiments with a measurement of their own: ``(data folder, output file, settings) -> tables``.
MEASUREMENTS: dict[str, Callable[[Path, Path, RunSettings], list[Table]]] = {
    "cost": cost_tables,
    "masks": mask_tables,
    "typed-tables": typed_tables,
}
#: How the rows of a measurement's file are read as tables; the others are plain CSV.
READERS: dict[str, Callable[[Sequence[Mapping[str, Any]]], list[Table]]] = {
    "cost": read_cost,
    "typed-tables": read_typed,
}


def run_experiment(
    name: str,
    collection: Collection,
    store: ResultStore,
    seeds: Sequence[int],
    settings: RunSettings,
    datasets: Sequence[str] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Table]:
    """Run one experiment and return its tables; an unknown name lists the choices.

    Parameters
    ----------
    name : str
        Of the experiment.
    collection : Collection
        Where the tables come from.
    store : ResultStore
        Where the rows go; ``MEASUREMENTS`` write files of their own beside it.
    seeds : sequence of int
        Seeds.
    settings : RunSettings
        Device, processes, limits.
    datasets : sequence of str, optional
        Other tables than the experiment's own.
    on_row : callable, optional
        Called with each finished row.
    """
    if name in MEASUREMENTS:
        if datasets:
            raise SettingError(f"The experiment {name!r} has its own tables: leave out --datasets.")
        return MEASUREMENTS[name](collection.directory, store.path, settings)
    if name not in EXPERIMENTS:
        choices = ", ".join((*EXPERIMENTS, *MEASUREMENTS))
        raise SettingError(f"There is no experiment {name!r}. Choose from: {choices}.")
    experiment = EXPERIMENTS[name]
    loader = collection.load if experiment.make_loader is None else experiment.make_loader(collection.load)
    cells = make_cells(experiment, seeds, datasets or experiment.datasets or collection.names)
    experiment.run(cells, store, loader, settings, on_row)
    if collection.name != "paper":  # hundreds of tables: their means by group
        return [means_table(make_board(store.read(), collection.name, name), experiment.title)]
    further = [] if experiment.further is None else experiment.further(collection.directory, store.path, settings)
    return [*experiment_tables(store.read(), name, variant_order(name)), *further]


def variant_order(name: str) -> tuple[str, ...]:
    """The variants of an experiment in the order of its table; empty for the main comparison."""
    return tuple(variant.name for variant in EXPERIMENTS[name].variants) if name in EXPERIMENTS else ()
