"""What each term of the default preset adds: one taken away at a time, on any collection.

The term ``pretrained`` takes no part: it was trained on the tables of macrOData.

Every term is standardised on its own, so the score without a term is the sum of the others: one fit serves all
variants. The rows of the results have no seconds for that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from ptad.arrays import rounded
from ptad.benchmark.experiments.variants import Experiment
from ptad.benchmark.leaderboard import gain_table, means_table
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.measurement import Outcome, Task
from ptad.benchmark.peers.protocol import FloatArray
from ptad.benchmark.plan import Variant
from ptad.benchmark.runner import run_grid
from ptad.benchmark.store import Results
from ptad.benchmark.summary import Board, make_board
from ptad.benchmark.workers import TaskSource
from ptad.config import PRESETS
from ptad.estimator import PTAD

DEFAULT, TRAINED = "default", "pretrained"
MEANS_TITLES = {"macro": "macrOData: means", "paper": "The paper's tables: means"}


def measure_parts(
    sources: Iterable[tuple[int, TaskSource]],
    on_outcome: Callable[[int, Outcome, str], None],
    *,
    n_workers: int,
    **limits: Any,
) -> None:
    """Measure all tasks with one fit for those that share their rows; see :func:`ptad.benchmark.workers.run_tasks`."""
    from joblib import Parallel, delayed

    tasks = ((number, task) for number, source in sources if (task := source()) is not None)
    # Tasks wait for their scores in the order in which they were made.
    waiting: list[list[tuple[int, Task]]] = []

    def fits() -> Iterator[Any]:
        for _, group in groupby(tasks, key=lambda item: item[1].train):
            waiting.append(list(group))
            task = waiting[-1][0][1]
            yield delayed(part_scores)(np.load(task.train), np.load(task.test), task.seed, task.device)

    for parts in Parallel(n_jobs=n_workers, return_as="generator", pre_dispatch="2*n_jobs")(fits()):
        for number, task in waiting.pop(0):
            on_outcome(number, Outcome(without(parts, task.settings["without"])), "ok")


#: The runner with one fit per table and seed; rows of other experiments would not be of the same fit.
run_parts = partial(run_grid, execute=measure_parts, adopt=False)


def part_scores(train: Any, test: Any, seed: int, device: str = "cpu") -> dict[str, FloatArray]:
    """What every term of the default adds to the scores of the test rows."""
    return terms_of(PTAD(random_state=seed, device=device, verbose=0).fit(train), test)


def terms_of(detector: PTAD, rows: Any) -> dict[str, FloatArray]:
    """What every term of a detector adds to the scores of rows."""
    table = detector.term_scores(rows)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def without(parts: dict[str, FloatArray], names: Sequence[str]) -> FloatArray:
    """The score without some terms."""
    return np.asarray(rounded(np.sum([values for term, values in parts.items() if term not in names], axis=0)))


def parts_page(results: Results) -> str:
    """What every group of tables loses without a term, and the mean that a term has to earn."""
    order = [variant.name for variant in DEFAULT_PARTS.variants]
    found = {name: results.experiment(name, DEFAULT_PARTS.name) for name in MEANS_TITLES}
    boards = [make_board(rows, name, DEFAULT_PARTS.name, order) for name, rows in found.items() if rows]
    if not boards:
        return ""
    title = "Change of the mean over tables without a term (95 % intervals, tables drawn with replacement)"
    tables = [gain_table(boards, DEFAULT, title), _overall(boards), *map(means_table, boards, MEANS_TITLES.values())]
    typed = results.measurement("typed-tables")
    return to_markdown(*tables, *([_typed(typed)] if typed else []))


def _overall(boards: Sequence[Board]) -> Table:
    """The change of the mean over the groups (odd, ovr, the 20) of the mean of AUC-PR and AUC-ROC."""
    gains = []
    for board in boards:
        both = (board.gains(DEFAULT, "auc_pr") + board.gains(DEFAULT, "auc_roc")) / 2
        gains += [both[chosen].mean(axis=0) for group, chosen in board.groups.items() if group != "all"]
    means = np.mean(gains, axis=0)
    body = [(name, f"{mean:+.4f}") for name, mean in zip(boards[0].methods, means, strict=True) if name != DEFAULT]
    title = f"Change of the mean of AUC-PR and AUC-ROC, mean over {len(gains)} groups of tables"
    return Table(title, ["Method", "Change"], body)


def _typed(rows: Sequence[Mapping[str, str]]) -> Table:
    """AUC-ROC of the tables of mixed type without a term."""
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
        Variant(DEFAULT, "ptad", {"without": (TRAINED,)}),
        *(
            Variant(f"without {name.replace('_', ' ')}", "ptad", {"without": (name, TRAINED)})
            for name in (term.title() for term in PRESETS["default"].terms)
            if name != TRAINED
        ),
    ),
    page=parts_page,
    run=run_parts,
)
