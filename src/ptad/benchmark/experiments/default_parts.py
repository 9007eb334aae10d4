"""What each term of the default preset adds: one term is removed at a time, on any collection.

The term ``pretrained`` is always removed, because it was trained on the tables of macrOData.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ptad.benchmark.experiments.base import Experiment
from ptad.benchmark.leaderboard import gain_table, means_table
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.plan import Variant
from ptad.benchmark.results import ResultsFolder
from ptad.benchmark.summary import Board, make_board
from ptad.config import PRESETS

DEFAULT, PRETRAINED = "default", "pretrained"
MEANS_TITLES = {"macro": "macrOData: means", "paper": "The paper's tables: means", "keel": "KEEL: means"}


def parts_page(results: ResultsFolder) -> str:
    """Return the change of the means without each term, for every group of tables and over all groups."""
    order = [variant.name for variant in DEFAULT_PARTS.variants]
    rows_by_collection = {name: results.experiment(name, DEFAULT_PARTS.name) for name in MEANS_TITLES}
    boards = [make_board(rows, name, DEFAULT_PARTS.name, order) for name, rows in rows_by_collection.items() if rows]
    if not boards:
        return ""
    title = "Change of the mean over tables without a term (95 % intervals, tables drawn with replacement)"
    tables = [gain_table(boards, DEFAULT, title), _overall(boards), *map(means_table, boards, MEANS_TITLES.values())]
    typed = results.measurement("typed-tables")
    return to_markdown(*tables, *([_typed(typed)] if typed else []))


def _overall(boards: Sequence[Board]) -> Table:
    """The change of the mean of AUC-PR and AUC-ROC, averaged over the groups of all collections."""
    changes = []
    for board in boards:
        both = (board.gains(DEFAULT, "auc_pr") + board.gains(DEFAULT, "auc_roc")) / 2
        changes += [both[members].mean(axis=0) for group, members in board.groups.items() if group != "all"]
    means = np.mean(changes, axis=0)
    body = [(name, f"{mean:+.4f}") for name, mean in zip(boards[0].methods, means, strict=True) if name != DEFAULT]
    title = f"Change of the mean of AUC-PR and AUC-ROC, mean over {len(changes)} groups of tables"
    return Table(title, ["Method", "Change"], body)


def _typed(rows: Sequence[Mapping[str, str]]) -> Table:
    """AUC-ROC on the tables of mixed type, and its change without each term."""
    whole = [float(row["auc_roc"]) for row in rows]
    body = [[DEFAULT, *(f"{value:.4f}" for value in (*whole, np.mean(whole)))]]
    for variant in DEFAULT_PARTS.variants[1:]:
        name = f"auc_roc_without_{variant.settings['without'][0]}"
        changes = [float(row[name]) - value for row, value in zip(rows, whole, strict=True)]
        body.append([variant.name, *(f"{change:+.4f}" for change in (*changes, np.mean(changes)))])
    header = ["Method", *(row["table"] for row in rows), "Mean"]
    return Table("Tables of mixed type: AUC-ROC of the default, and its change without a term", header, body)


DEFAULT_PARTS = Experiment(
    "default-parts",
    "The default preset with one term taken away",
    (
        Variant(DEFAULT, "ptad", {"without": (PRETRAINED,)}),
        *(
            Variant(f"without {name.replace('_', ' ')}", "ptad", {"without": (name, PRETRAINED)})
            for name in (term.title() for term in PRESETS["default"].terms)
            if name != PRETRAINED
        ),
    ),
    page=parts_page,
)
