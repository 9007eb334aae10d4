"""The paper's further experiments and those of the default: two registries, one command.

Experiments are lists of variants that the ordinary runner measures and the ordinary tables show; measurements look at
something else than accuracy and have a file of their own. ``context`` is both.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from ptad.benchmark.collections import Collection
from ptad.benchmark.experiments.cost import COST
from ptad.benchmark.experiments.default_parts import DEFAULT_PARTS
from ptad.benchmark.experiments.masks import MASKS
from ptad.benchmark.experiments.paper import MOVEMENT, PAPER_EXPERIMENTS
from ptad.benchmark.experiments.paper_grid import PAPER_GRID
from ptad.benchmark.experiments.typed_tables import TYPED_TABLES
from ptad.benchmark.experiments.variants import Experiment, Measurement
from ptad.benchmark.leaderboard import means_table
from ptad.benchmark.markdown import Table
from ptad.benchmark.plan import RunSettings, make_cells, parse_seeds
from ptad.benchmark.store import ResultStore, Row
from ptad.benchmark.summary import make_board
from ptad.benchmark.tables import experiment_tables
from ptad.errors import SettingError

__all__ = ["EXPERIMENTS", "MEASUREMENTS", "run_experiment", "run_measurement", "variant_order"]

#: Experiments that are grids of variants.
EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (*PAPER_EXPERIMENTS, DEFAULT_PARTS, PAPER_GRID)}
#: Measurements with a file of their own.
MEASUREMENTS: dict[str, Measurement] = {
    "context": MOVEMENT,
    "cost": COST,
    "masks": MASKS,
    "typed-tables": TYPED_TABLES,
}


def run_experiment(
    name: str,
    tables: Collection,
    out: Path,
    settings: RunSettings,
    *,
    datasets: str | None = None,
    sample: int | None = None,
    seeds: str | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Table]:
    """Run one experiment and return its tables; an unknown name lists the choices.

    ``datasets``, ``sample`` and ``seeds`` are named as on the command line. Measurements write files of their own
    beside ``out``.
    """
    if name not in EXPERIMENTS and name not in MEASUREMENTS:
        choices = ", ".join(dict.fromkeys((*EXPERIMENTS, *MEASUREMENTS)))
        raise SettingError(f"There is no experiment {name!r}. Choose from: {choices}.")
    chosen = None if datasets is None and sample is None else tables.select(datasets or "all", sample)
    if name not in EXPERIMENTS:
        if chosen is not None:
            raise SettingError(f"The experiment {name!r} has its own tables: leave out --datasets.")
        return run_measurement(name, tables.directory, out, settings)
    experiment, store = EXPERIMENTS[name], ResultStore(out)
    loader = tables.load if experiment.make_loader is None else experiment.make_loader(tables.load)
    places = chosen or experiment.datasets or tables.names
    cells = make_cells(experiment.variants, places, parse_seeds(seeds or tables.seeds), experiment=name)
    experiment.run(cells, store, loader, settings, on_row)
    if tables.name != "paper":  # hundreds of tables: their means by group
        return [means_table(make_board(store.read(), tables.name, name), experiment.title)]
    further = run_measurement(name, tables.directory, out, settings) if name in MEASUREMENTS else []
    return [*experiment_tables(store.read(), name, variant_order(name)), *further]


def run_measurement(name: str, directory: Path, out: Path, settings: RunSettings) -> list[Table]:
    """Measure, and write ``NAME.csv`` beside ``out`` after every row: one may take minutes."""
    measurement, rows = MEASUREMENTS[name], []
    out.parent.mkdir(parents=True, exist_ok=True)
    for row in measurement.measure(directory, out, settings):
        rows.append(row)
        with out.with_name(f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return measurement.tables(rows, measurement.title)


def variant_order(name: str) -> tuple[str, ...]:
    """The variants of an experiment in the order of its table; empty for the main comparison."""
    return tuple(variant.name for variant in EXPERIMENTS[name].variants) if name in EXPERIMENTS else ()
