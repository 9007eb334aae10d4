"""The paper preset under the settings that the paper leaves open, on its ten smallest tables.

The question is whether some choice explains the printed results. The text gives no learning rate, number of steps,
batch size or scaling. Rates and steps are those that NPT-AD's authors chose between on the same tables. The cosine
schedule of the rate ends with the last step, so a short training is not a prefix of a long one: the number of steps is
a setting like the others, and picking it per table stands for picking the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.collections import catalogue, dataset_title
from ptad.benchmark.encoding import SCALINGS
from ptad.benchmark.experiments.base import Experiment, paper_variant
from ptad.benchmark.leaderboard import means_table
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.plan import Variant
from ptad.benchmark.results import MEASURED, ResultsFolder, Row
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
    """Return the tables with the smallest number of rows times columns."""
    infos = sorted(catalogue().values(), key=lambda info: info.rows * info.columns)
    return tuple(info.name for info in infos[:n_tables])


def _variants() -> tuple[Variant, ...]:
    return tuple(
        paper_variant(f"{training}, {scaling}, {steps} steps", scaling=scaling, n_steps=steps, **settings)
        for steps, scaling, (training, settings) in product(STEPS, SCALINGS, TRAININGS.items())
    )


def grid_page(results: ResultsFolder) -> str:
    """Return the page: the best setting, what picking with test labels would give, and the printed values."""
    rows = current(results.experiment("paper", "paper-grid"))
    if not rows:
        return ""
    board = make_board(rows, "paper", "paper-grid")
    seeds = sorted({int(row["seed"]) for row in rows})
    cells = [published()["main", "ptad-paper", name] for name in board.datasets]
    columns = {"printed": np.array([[getattr(cell, metric) for cell in cells] for metric in METRICS])}
    columns |= pick_settings(board, rows)
    body = [
        [dataset_title(name), *(_pair(values[:, place]) for values in columns.values())]
        for place, name in enumerate(board.datasets)
    ]
    means = [values.mean(axis=1) for values in columns.values()]
    body.append(["Mean", *map(_pair, means)])
    tables = (
        Table(f"AUC-PR / AUC-ROC, seeds {seeds[0]} to {seeds[-1]}", ["Table", *columns], body),
        means_table(board, "All settings, best mean AUC-PR first"),
        coverage_table(rows),
    )
    return f"{verdict(board, means)}\n\n{to_markdown(*tables)}"


def pick_settings(board: Board, rows: Sequence[Row]) -> dict[str, Matrix]:
    """Return AUC-PR and AUC-ROC, (2, n_tables), of the preset, of the best single setting, and of two picks by label.

    The last two use the test labels: they are upper bounds, not something that a method could reach.
    """
    values = np.stack([board.values[metric] for metric in METRICS])  # (2, n_tables, n_settings)
    best_of_table = values[0].argmax(axis=1)
    splits = grouped((row for row in rows if row["status"] in MEASURED), itemgetter("dataset", "seed"))
    best_of_split = [max(members, key=itemgetter("auc_pr")) for members in splits.values()]
    best_rows = grouped(best_of_split, itemgetter("dataset"))
    by_seed = [[np.mean([row[metric] for row in best_rows[name]]) for name in board.datasets] for metric in METRICS]
    return {
        "preset": values[:, :, board.methods.index(PRESET)],
        "best single setting": values[:, :, 0],
        "**picked with test labels**: setting and steps per table": np.stack(
            [values[:, place, setting] for place, setting in enumerate(best_of_table)], axis=1
        ),
        "**picked with test labels**: per table and seed": np.array(by_seed),
    }


def verdict(board: Board, means: Sequence[Matrix]) -> str:
    """Return the result in a sentence."""
    printed, preset, single, table, seed = (float(mean[0]) for mean in means)
    if single >= printed:
        conclusion = "A single setting reaches the printed mean"
    elif table >= printed:
        conclusion = "Picking setting and steps per table with the test labels is enough to reach the printed mean"
    elif seed >= printed:
        conclusion = "Only picking per table and seed with the test labels reaches the printed mean"
    else:
        conclusion = "Even picking with the test labels does not reach the printed mean"
    return (
        f"{len(board.methods)} settings on {len(board.datasets)} tables. Mean AUC-PR: printed {printed:.4f}, preset "
        f"{preset:.4f}, best single setting ({board.methods[0]}) {single:.4f}, picked with test labels per table "
        f"{table:.4f}, per table and seed {seed:.4f}. **{conclusion}.**"
    )


def _pair(values: Matrix) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


PAPER_GRID = Experiment(
    "paper-grid",
    "The paper preset over what the paper leaves open",
    _variants(),
    smallest_tables(),
    page=grid_page,
)
