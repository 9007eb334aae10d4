"""The paper's further experiments and those of the default preset, in two registries behind one command.

Experiments are grids of variants that the ordinary runner measures. Measurements look at something besides accuracy and
have a results file of their own. ``context`` is both.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from ptad.benchmark.collections import Collection
from ptad.benchmark.experiments.base import Experiment, Measurement
from ptad.benchmark.experiments.cost import COST
from ptad.benchmark.experiments.default_parts import DEFAULT_PARTS
from ptad.benchmark.experiments.masks import MASKS
from ptad.benchmark.experiments.paper import BATCH_DEPENDENCE, PAPER_EXPERIMENTS
from ptad.benchmark.experiments.paper_grid import PAPER_GRID
from ptad.benchmark.experiments.typed_tables import TYPED_TABLES
from ptad.benchmark.leaderboard import means_table
from ptad.benchmark.markdown import Table
from ptad.benchmark.plan import RunSettings, make_cells, parse_seeds
from ptad.benchmark.results import ResultsFile, Row
from ptad.benchmark.runner import run_grid
from ptad.benchmark.summary import make_board
from ptad.benchmark.tables import experiment_tables
from ptad.errors import SettingError
from ptad.files import write_atomic

__all__ = ["EXPERIMENTS", "MEASUREMENTS", "run_experiment", "run_measurement", "variant_order"]

#: Grids of variants.
EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (*PAPER_EXPERIMENTS, DEFAULT_PARTS, PAPER_GRID)}
#: Measurements with a results file of their own.
MEASUREMENTS: dict[str, Measurement] = {
    "context": BATCH_DEPENDENCE,
    "cost": COST,
    "masks": MASKS,
    "typed-tables": TYPED_TABLES,
}


def run_experiment(
    name: str,
    collection: Collection,
    out: Path,
    settings: RunSettings,
    *,
    datasets: str | None = None,
    sample: int | None = None,
    seeds: str | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Table]:
    """Run one experiment and return its tables; an unknown name lists the choices.

    ``datasets``, ``sample`` and ``seeds`` are written as on the command line. Measurements write their files beside
    ``out``.
    """
    if name not in EXPERIMENTS and name not in MEASUREMENTS:
        choices = ", ".join(dict.fromkeys((*EXPERIMENTS, *MEASUREMENTS)))
        raise SettingError(f"There is no experiment {name!r}. Choose from: {choices}.")
    selected = None if datasets is None and sample is None else collection.select(datasets or "all", sample)
    if name not in EXPERIMENTS:
        if selected is not None:
            raise SettingError(f"The experiment {name!r} has its own tables.", "Leave out {datasets}.")
        return run_measurement(name, collection.directory, out, settings)
    experiment, results = EXPERIMENTS[name], ResultsFile(out)
    loader = collection.load if experiment.make_loader is None else experiment.make_loader(collection.load)
    tables = selected or experiment.datasets or collection.names
    cells = make_cells(experiment.variants, tables, parse_seeds(seeds or collection.seeds), experiment=name)
    run_grid(cells, results, loader, settings, on_row)
    if collection.name != "paper":  # hundreds of tables: their means by group
        return [means_table(make_board(results.read(), collection.name, name), experiment.title)]
    further = run_measurement(name, collection.directory, out, settings) if name in MEASUREMENTS else []
    return [*experiment_tables(results.read(), name, variant_order(name)), *further]


def run_measurement(name: str, directory: Path, out: Path, settings: RunSettings) -> list[Table]:
    """Measure, and rewrite ``NAME.csv`` beside ``out`` after every row, since one may take minutes."""
    measurement, rows = MEASUREMENTS[name], []
    out.parent.mkdir(parents=True, exist_ok=True)
    for row in measurement.measure(directory, out, settings):
        rows.append(row)
        content = io.StringIO()
        writer = csv.DictWriter(content, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(out.with_name(f"{name}.csv"), content.getvalue().encode())
    return measurement.tables(rows, measurement.title)


def variant_order(name: str) -> tuple[str, ...]:
    """Return the variants of an experiment in the order of its table; none for the main comparison."""
    return tuple(variant.name for variant in EXPERIMENTS[name].variants) if name in EXPERIMENTS else ()
