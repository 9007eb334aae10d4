"""What was planned for the paper's tables and is still empty, cell by cell: a pure read of the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptad.benchmark.catalogue import catalogue, dataset_title
from ptad.benchmark.experiments import EXPERIMENTS, variant_order
from ptad.benchmark.experiments.paper_grid import smallest_tables
from ptad.benchmark.experiments.variants import FOUR_TABLES
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.store import MEASURED, Row
from ptad.benchmark.summary import current, short_reason
from ptad.benchmark.tables import Table, plain_table

Planned = tuple[str, Sequence[str], Sequence[str], Sequence[int]]


def planned_cells() -> Iterator[Planned]:
    """Experiment, variants, tables and seeds of everything that is to be measured."""
    every, small = tuple(catalogue()), smallest_tables()
    yield "main", DEEP_PEERS, every, (0, 1, 2)
    for name in ("ablation", "backbones"):
        yield name, variant_order(name), every, (0,)
        yield name, variant_order(name), small, (1, 2)
    for name in ("counts", "weights", "distance"):
        yield name, variant_order(name), FOUR_TABLES, (0,)
    yield "context", variant_order("context"), every, (0,)
    yield "anomaly-types", variant_order("anomaly-types"), EXPERIMENTS["anomaly-types"].datasets, (0,)
    yield "paper-grid", variant_order("paper-grid"), small, (0, 1, 2)


def gap_table(rows: Sequence[Row]) -> Table:
    """One row per experiment and table with cells that have no figure; a cell that was tried says why."""
    found: dict[tuple[object, ...], Row] = {}
    for row in current(rows):
        key = (row["experiment"], row["variant"], row["dataset"], row["seed"])
        if key not in found or row["status"] in MEASURED:
            found[key] = row
    gaps: dict[tuple[str, str], list[str]] = {}
    total = empty = 0
    for experiment, variants, tables, seeds in planned_cells():
        for table in tables:
            for variant in variants:
                cells = {seed: found.get((experiment, variant, table, seed)) for seed in seeds}
                lost = {seed: row for seed, row in cells.items() if row is None or row["status"] not in MEASURED}
                total, empty = total + len(cells), empty + len(lost)
                if lost:
                    reasons = dict.fromkeys(short_reason(row) for row in lost.values() if row is not None)
                    text = f"{variant} (seed {', '.join(map(str, lost))}{''.join(f'; {reason}' for reason in reasons)})"
                    gaps.setdefault((experiment, table), []).append(text)
    body = [(experiment, dataset_title(table), "; ".join(texts)) for (experiment, table), texts in gaps.items()]
    title = f"Planned cells that are still empty: {empty:,} of {total:,}"
    return plain_table(title, ["Experiment", "Table", "Empty cells"], body)
