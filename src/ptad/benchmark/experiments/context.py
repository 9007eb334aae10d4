"""The batch context of the paper against fixed reference rows, for the paper preset.

How far scores move with the batch is measured by :func:`ptad.benchmark.contracts.batch_dependence`; the AUC tells
whether the freedom from the batch costs anything.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptad.benchmark.collections import load_dataset
from ptad.benchmark.contracts import batch_dependence
from ptad.benchmark.experiments.variants import Experiment, paper_variant
from ptad.benchmark.peers import make_peer
from ptad.benchmark.plan import RunSettings
from ptad.benchmark.split import half_split
from ptad.benchmark.tables import Table, TableCell

MOVEMENT_TABLE = "cardio"
_ROWS = 400


def movement_tables(
    directory: Path, out: Path, settings: RunSettings, config: Mapping[str, Any] | None = None
) -> list[Table]:
    """How far scores move with the batch, as a share of their 10 % to 90 % spread, on cardio; also ``context.csv``."""
    data = load_dataset(directory, MOVEMENT_TABLE)
    split = half_split(data.y, 0)
    train, test = data.X[split.train], data.X[split.test[:_ROWS]]
    rows = []
    for variant in CONTEXT.variants:
        chosen = {**variant.settings["config"], **(config or {})}
        peer = make_peer(variant.method, device=settings.device, config=chosen).fit(train)
        rows.append([TableCell(variant.name), TableCell(f"{batch_dependence(peer, test):.2g}")])
    header = ["Variant", f"largest change of a score with the batch, share of the scores' spread ({MOVEMENT_TABLE})"]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_name("context.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *([cell.text for cell in row] for row in rows)])
    return [Table("Movement with the batch", header, rows)]


CONTEXT = Experiment(
    "context",
    "Batch context against reference context",
    tuple(paper_variant(context, context=context) for context in ("reference", "batch")),
    further=movement_tables,
)
