"""The figures of the README: a pure read of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptad.benchmark.leaderboard import BASELINE, SAMPLE, sample_rows, won
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.metrics import RATES
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.store import ALARM_COLUMNS, Results, Row
from ptad.benchmark.summary import METRICS, Board, experiment_rows, make_board

DEFAULT, PAPER = "ptad", "ptad-paper"
GROUPS = {
    "odd": "Odd: {n} tables of macrOData, semantic anomalies",
    "ovr": "Ovr: {n} tables of macrOData, one class against the rest",
}


def headline(results: Results) -> str:
    """Return the table of the README and the sentences below it, Markdown."""
    macro, paper = (experiment_rows(results.rows(name), "main") for name in ("macro", "paper"))
    folds = results.measurement("pretrained")
    body = [*_macro_lines(macro, folds), _paper_line(paper), _typed_line(results.measurement("typed-tables"))]
    header = ["mean AUC-PR / AUC-ROC", "`default`", "first neighbour", "`paper`"]
    return f"{to_markdown(Table('', header, body))}\n\n{' '.join(_sentences(macro, folds))}"


def _macro_lines(rows: Sequence[Row], folds: Sequence[dict[str, str]]) -> list[list[str]]:
    """The default was trained on these tables: its figures are those of weights that never saw the table."""
    board = make_board(_of(rows, DEFAULT, BASELINE), "macro")
    lines = []
    for group, title in GROUPS.items():
        chosen = board.groups[group]
        own = [row for row in folds if row["table"].startswith(f"{group}_")]
        means = (np.mean([float(row[metric]) for row in own]) for metric in METRICS)
        default = " / ".join(f"{mean:.3f}" for mean in means) if own else _pair(board, DEFAULT, chosen)
        lines.append([title.format(n=int(chosen.sum())), default, _pair(board, BASELINE, chosen), ""])
    return lines


def _paper_line(rows: Sequence[Row]) -> list[str]:
    own = _of(rows, DEFAULT, BASELINE, PAPER)
    board = make_board(own, "paper")
    most = [max(row[name] for row in own) for name in ("max_train", "max_test")]
    seeds = {method: [row["seed"] for row in own if row["variant"] == method] for method in (DEFAULT, PAPER)}
    title = (
        f"the paper's {len(board.datasets)} tables, at most {most[0]:,} training and {most[1]:,} test rows, seeds 0 to "
        f"{max(seeds[DEFAULT])} (`paper`: to {max(seeds[PAPER])})"
    )
    return [title, *(_pair(board, method) for method in (DEFAULT, BASELINE, PAPER))]


def _typed_line(rows: Sequence[dict[str, str]]) -> list[str]:
    most = max(int(row["n_train"]) for row in rows)
    ours, theirs = (np.mean([float(row[name]) for row in rows]) for name in ("auc_roc", "auc_roc_knn"))
    title = f"{len(rows)} tables of mixed type, at most {most:,} training rows, AUC-ROC"
    return [title, f"{ours:.3f}", f"{theirs:.3f} (kNN, one-hot)", ""]


def _sentences(rows: Sequence[Row], folds: Sequence[dict[str, str]]) -> list[str]:
    board = make_board(rows, "macro")
    gains = board.gains(BASELINE, "auc_pr")[:, board.methods.index(DEFAULT)]
    place = 1 + board.methods.index(DEFAULT)
    found = []
    if folds:
        means = [np.mean([float(row[f"{metric}_without"]) for row in folds]) for metric in METRICS]
        found.append(
            "On macrOData the term `pretrained`, trained on labels of other tables, is measured in five folds: "
            f"its weights never saw the table. Without it the default has {means[0]:.3f} / {means[1]:.3f} over all "
            f"{len(folds)} tables; all that follows is without it."
        )
    found.append(
        f"On the {len(board.datasets)} tables it wins against the first neighbour on {won(gains):.0%} "
        f"and has the {'best' if place == 1 else f'{place}. best'} mean AUC-PR of {len(board.methods)} methods "
        "([leaderboard](docs/macro.md))."
    )
    if sample := sample_rows(rows):
        few = make_board(sample, "macro")
        deep = [method for method in few.methods if method in DEEP_PEERS]
        found.append(
            f"On the fixed sample of {SAMPLE} of them that {len(deep)} deep methods were measured on too, it has "
            f"{_pair(few, DEFAULT)}, the best deep method ({deep[0]}) {_pair(few, deep[0])}."
        )
    alarms = [np.mean([row[name] for row in _of(rows, DEFAULT) if row[name] is not None]) for name in ALARM_COLUMNS]
    found.append(
        f"Flagged normal rows at target rates of {_listed([f'{rate:.2f}' for rate in RATES])}: "
        f"{_listed([f'{share:.4f}' for share in alarms])} on average over these tables."
    )
    return found


def _of(rows: Sequence[Row], *methods: str) -> list[Row]:
    return [row for row in rows if row["variant"] in methods]


def _pair(board: Board, method: str, chosen: Any = slice(None)) -> str:
    """Mean AUC-PR and AUC-ROC of a method over some tables."""
    return " / ".join(f"{board.column(method, metric)[chosen].mean():.3f}" for metric in METRICS)


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
