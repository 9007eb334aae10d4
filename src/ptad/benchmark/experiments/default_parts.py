"""What each term of the default preset adds: one taken away at a time, on any collection.

The term ``pretrained`` takes no part: it was trained on the tables of macrOData.

Every term is standardised on its own, so the score without a term is the sum of the others: one fit serves all
variants. The rows of the results have no seconds for that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptad.arrays import rounded
from ptad.benchmark.experiments.variants import Experiment
from ptad.benchmark.leaderboard import gain_table, means_table
from ptad.benchmark.markdown import Table, to_markdown
from ptad.benchmark.metrics import evaluate
from ptad.benchmark.peers.protocol import FloatArray
from ptad.benchmark.plan import Cell, RunSettings, Variant, plan_cells
from ptad.benchmark.runner import Loader, PreparedRows, RowWriter, prepare_rows
from ptad.benchmark.store import Results, ResultStore, Row
from ptad.benchmark.summary import Board, make_board
from ptad.config import PRESETS
from ptad.errors import DataError
from ptad.estimator import PTAD

DEFAULT, TRAINED = "default", "pretrained"
MEANS_TITLES = {"macro": "macrOData: means", "paper": "The paper's tables: means"}


def run_parts(
    cells: Iterable[Cell],
    store: ResultStore,
    loader: Loader,
    settings: RunSettings | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure every cell that the store does not hold yet, with one fit per table and seed; return the new rows.

    Parameters
    ----------
    cells, store, loader, settings, on_row
        As in :func:`ptad.benchmark.runner.run_grid`; the cells are variants of the default preset.
    """
    from joblib import Parallel, delayed

    settings = settings or RunSettings()
    groups: dict[tuple[str, int], list[tuple[Cell, Row]]] = {}
    for cell, base in plan_cells(cells, store, settings):
        groups.setdefault((cell.dataset, cell.seed), []).append((cell, base))
    writer = RowWriter(store, on_row)
    # The labels stay on this side. Rows wait for their scores in the order in which they were prepared.
    prepared: list[tuple[list[tuple[Cell, Row]], PreparedRows]] = []

    def tasks() -> Iterator[Any]:
        for group in groups.values():
            try:
                found = prepare_rows(group[0][0], loader, settings)
            except DataError as error:
                for _, base in group:
                    writer.write(base, {"status": "skipped", "reason": str(error)})
                continue
            prepared.append((group, found))
            yield delayed(part_scores)(found.train, found.test, group[0][0].seed, settings.device)

    for parts in Parallel(n_jobs=settings.jobs, return_as="generator", pre_dispatch="2*n_jobs")(tasks()):
        group, found = prepared.pop(0)
        for cell, base in group:
            figures = evaluate(found.y_test, without(parts, cell.settings["without"]))
            status = "capped" if found.cut else "ok"
            writer.write(base, {"status": status, "reason": found.cut, **found.shape, **figures})
    return writer.rows


def part_scores(train: Any, test: Any, seed: int, device: str = "cpu") -> dict[str, FloatArray]:
    """What every term of the default adds to the scores of the test rows."""
    table = PTAD(random_state=seed, device=device, verbose=0).fit(train).term_scores(test)
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
    return "\n\n".join(to_markdown(table) for table in (*tables, *([_typed(typed)] if typed else [])))


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
