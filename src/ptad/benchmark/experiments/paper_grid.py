"""The paper preset over what the paper leaves open, on its ten smallest tables: does a choice explain its figures?

The text gives no learning rate, number of steps, batch size or scaling. Rates and steps are those that NPT-AD's authors
chose between on the same tables. The cosine of the rate ends with the last step, so a short training is no prefix of a
long one: the number of steps is a setting like the others, and picking it per table stands for picking the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np

from ptad.benchmark.collections import catalogue, dataset_title
from ptad.benchmark.encoding import SCALINGS
from ptad.benchmark.experiments.variants import Experiment, paper_variant
from ptad.benchmark.leaderboard import means_table
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.peers.protocol import FloatArray
from ptad.benchmark.plan import Variant
from ptad.benchmark.store import MEASURED, Results, Row
from ptad.benchmark.summary import METRICS, Board, current, grouped, make_board
from ptad.benchmark.tables import coverage_table, published

N_TABLES = 10
PRESET = "LAMB 0.01, standard, 500 steps"
STEPS = (100, 500, 1000)
#: What is crossed with steps and scaling: a name, and the settings that differ from the preset.
TRAININGS: dict[str, dict[str, Any]] = {
    "LAMB 0.01": {"learning_rate": 0.01},
    "LAMB 0.001": {"learning_rate": 0.001},
    "LAMB 0.01, context batch": {"learning_rate": 0.01, "context": "batch"},
    "LAMB 0.01, batches of 64": {"learning_rate": 0.01, "batch_size": 64},
    "AdamW 0.001": {"optimizer": "adamw", "learning_rate": 0.001},
}


def smallest_tables(n_tables: int = N_TABLES) -> tuple[str, ...]:
    """The tables with the fewest cells."""
    known = catalogue()
    return tuple(sorted(known, key=lambda name: known[name].rows * known[name].columns)[:n_tables])


def _variants() -> tuple[Variant, ...]:
    return tuple(
        paper_variant(f"{training}, {scaling}, {steps} steps", scaling=scaling, n_steps=steps, **settings)
        for steps, scaling, (training, settings) in product(STEPS, SCALINGS, TRAININGS.items())
    )


def grid_page(results: Results) -> str:
    """The best single setting, what picking with test labels would give, and the printed figures beside both."""
    rows = current(results.experiment("paper", "paper-grid"))
    if not rows:
        return ""
    board = make_board(rows, "paper", "paper-grid")
    seeds = sorted({int(row["seed"]) for row in rows})
    picks = pick_settings(board, rows)
    printed = [published()["main", "ptad-paper", name] for name in board.datasets]
    wanted = np.array([[getattr(cell, metric) for cell in printed] for metric in METRICS])
    body = []
    for place, name in enumerate(board.datasets):
        figures = [wanted[:, place], *(values[:, place] for values in picks.values())]
        body.append([dataset_title(name), *map(_pair, figures)])
    means = [wanted.mean(axis=1), *(values.mean(axis=1) for values in picks.values())]
    body.append(["Mean", *map(_pair, means)])
    header = ["Table", "printed", *picks]
    tables = (
        Table(f"AUC-PR / AUC-ROC, seeds {seeds[0]} to {seeds[-1]}", header, body),
        means_table(board, "All settings, best mean AUC-PR first"),
        coverage_table(rows),
    )
    return f"{verdict(board, means)}\n\n{to_markdown(*tables)}"


def pick_settings(board: Board, rows: Sequence[Row]) -> dict[str, FloatArray]:
    """AUC-PR and AUC-ROC, (2, n_tables), of the preset, of the best setting of all, and of two ways to pick by labels.

    The last two know the test labels: they are what a figure would be if somebody looked, not what a method can do.
    """
    values = np.stack([board.values[metric] for metric in METRICS])  # (2, n_tables, n_settings)
    preset, tables = board.methods.index(PRESET), np.arange(len(board.datasets))
    chosen = values[0].argmax(axis=1)
    cells = grouped((row for row in rows if row["status"] in MEASURED), itemgetter("dataset", "seed"))
    best = {key: max(found, key=itemgetter("auc_pr")) for key, found in cells.items()}
    seeds = sorted({seed for _, seed in best})
    by_seed = [[[best[d, s][m] for s in seeds if (d, s) in best] for d in board.datasets] for m in METRICS]
    return {
        "preset": values[:, :, preset],
        "best single setting": values[:, :, 0],
        "**picked with test labels**: setting and steps per table": values[:, tables, chosen],
        "**picked with test labels**: per table and seed": np.array([[np.mean(v) for v in row] for row in by_seed]),
    }


def verdict(board: Board, means: Sequence[FloatArray]) -> str:
    """What the figures say, in words."""
    printed, preset, single, table, seed = (float(mean[0]) for mean in means)
    if single >= printed:
        said = "A single setting reaches the printed mean"
    elif table >= printed:
        said = "Picking setting and steps per table with the test labels is enough to reach the printed mean"
    elif seed >= printed:
        said = "Only picking per table and seed with the test labels reaches the printed mean"
    else:
        said = "Even picking with the test labels does not reach the printed mean"
    return (
        f"{len(board.methods)} settings on {len(board.datasets)} tables. Mean AUC-PR: printed {printed:.4f}, preset "
        f"{preset:.4f}, best single setting ({board.methods[0]}) {single:.4f}, picked with test labels per table "
        f"{table:.4f}, per table and seed {seed:.4f}. **{said}.**"
    )


def _pair(values: FloatArray) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


PAPER_GRID = Experiment(
    "paper-grid",
    "The paper preset over what the paper leaves open",
    _variants(),
    smallest_tables(),
    page=grid_page,
)
