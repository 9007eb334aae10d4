"""The leaderboard of a collection: a page that is a pure read of its results file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.collections import group_of
from ptad.benchmark.figures import save_critical_difference
from ptad.benchmark.metrics import RATES
from ptad.benchmark.report import TITLES, coverage_table
from ptad.benchmark.statistics import bootstrap_interval, compare_values, mean_ranks
from ptad.benchmark.store import ALARM_COLUMNS, MEASURED, Row
from ptad.benchmark.summary import MOST, Summary, experiment_rows, summarise
from ptad.benchmark.tables import BEST, PLAIN, Table, TableCell, to_markdown
from ptad.errors import DataError

#: The first neighbour in clipped min-max columns: the method to beat.
BASELINE = "nn1-clip1"
METRICS = ("auc_pr", "auc_roc")
#: What tables are told apart by: title, column of the results, upper edges, how an edge is written.
CLASSES: tuple[tuple[str, str, tuple[float, ...], str], ...] = (
    ("columns", "n_features", (4, 8, 16), ".0f"),
    ("training rows", "n_train", (1_000, 2_999, 10_000), ",.0f"),
    ("share of anomalies", "prevalence", (0.05, 0.1, 0.2), ".0%"),
)

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Board:
    """Figures of all methods on the tables that all of them were measured on.

    Attributes
    ----------
    collection : str
        Its name.
    methods, datasets : list of str
        Best mean AUC-PR first, and the tables.
    values : dict
        Metric to ndarray of shape (n_datasets, n_methods).
    scaling : dict
        The scaling that counts for a method.
    """

    collection: str
    methods: list[str]
    datasets: list[str]
    values: dict[str, Values]
    scaling: dict[str, str]

    @property
    def groups(self) -> dict[str, npt.NDArray[np.bool_]]:
        """The tables of every group; all tables come last where there are several groups."""
        names = np.array([group_of(self.collection, dataset) for dataset in self.datasets])
        found = {str(group): names == group for group in np.unique(names)}
        return found if len(found) == 1 else {**found, "all": np.ones(len(names), dtype=bool)}


def make_board(rows: Sequence[Row], collection: str, experiment: str = "main", every: bool = False) -> Board:
    """Gather one experiment; a table on which a method failed or ran out of time counts as chance for it.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a results file.
    collection : str
        Name of the collection.
    experiment : str
        Whose rows; the main comparison unless told otherwise.
    every : bool
        Take all methods and the few tables that they share, instead of the methods that have most tables.
    """
    chosen = experiment_rows(rows, experiment)
    found = {metric: _matrix(summarise(chosen, metric), chosen) for metric in METRICS}
    summary = summarise(chosen, "auc_pr")
    tried = ~np.isnan(found["auc_pr"])
    enough = 0.0 if every else MOST * len(summary.datasets)
    kept = np.flatnonzero(tried.sum(axis=0) >= enough) if tried.size else np.empty(0, dtype=np.int64)
    shared = np.flatnonzero(tried[:, kept].all(axis=1)) if len(kept) else kept
    if not len(shared):
        raise DataError("The results hold no table that all methods were measured on. Run 'ptad benchmark run' first.")
    order = kept[np.argsort(-found["auc_pr"][np.ix_(shared, kept)].mean(axis=0), kind="stable")]
    values = {metric: matrix[np.ix_(shared, order)] for metric, matrix in found.items()}
    methods, datasets = [summary.methods[i] for i in order], [summary.datasets[i] for i in shared]
    return Board(collection, methods, datasets, values, summary.scaling)


def _matrix(summary: Summary, rows: Sequence[Row]) -> Values:
    """Return (n_datasets, n_methods); chance where a method was lost, NaN where it was not tried."""
    known = {str(row["dataset"]): row["prevalence"] for row in rows if row["status"] in MEASURED}
    values = summary.matrix()
    for i, dataset in enumerate(summary.datasets):
        for j, method in enumerate(summary.methods):
            figure = summary.figures.get((method, dataset))
            if figure is not None and figure.mean is None and dataset in known:
                values[i, j] = known[dataset] if summary.metric == "auc_pr" else 0.5
    return values


def leaderboard_page(rows: Sequence[Row], collection: str, page: Path) -> None:
    """Write the page, and its critical-difference diagram into the folder ``images`` beside it."""
    board = make_board(rows, collection)
    main = experiment_rows(rows, "main")
    image = page.parent / "images" / f"{collection}_critical_difference.png"
    parts = [
        f"# Leaderboard of the collection `{collection}`",
        f"Generated from the results by `ptad benchmark leaderboard`. {len(board.datasets)} tables that all of "
        f"{len(board.methods)} methods were measured on. A method without a scaling of its own counts under the "
        "better of two, one for all tables. A table on which a method failed counts as chance for it. Intervals: 95 %, "
        "tables drawn with replacement.",
        to_markdown(means_table(board)),
    ]
    if len(board.methods) > 1 and len(board.datasets) > 5:
        result = compare_values(board.methods, board.datasets, board.values["auc_pr"])
        save_critical_difference(result, "auc_pr", image)
        parts.append(f"![Mean ranks by AUC-PR; joined methods are not told apart](images/{image.name})")
    if BASELINE in board.methods:
        parts.append(to_markdown(baseline_table(board)))
    parts += [to_markdown(table) for table in class_tables(board, main)]
    alarms = alarm_table(rows, collection)
    if alarms.rows:
        parts.append(to_markdown(alarms))
    parts += [to_markdown(cost_table(main)), to_markdown(coverage_table(main))]
    if {str(row["variant"]) for row in main} > set(board.methods):
        few = make_board(rows, collection, every=True)
        title = f"All methods, on the {len(few.datasets)} tables that they share"
        parts.append(to_markdown(means_table(few, title)))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def means_table(board: Board, title: str = "Means over tables") -> Table:
    """Mean AUC-PR and AUC-ROC of every group, mean rank by AUC-PR."""
    ranks = mean_ranks(board.values["auc_pr"])
    header = ["Method", "Scaling", "Mean rank"]
    columns: list[list[TableCell]] = [
        [TableCell(method) for method in board.methods],
        [TableCell(board.scaling[method]) for method in board.methods],
        _column(ranks, "{:.2f}", largest=False),
    ]
    for group, chosen in board.groups.items():
        for metric in METRICS:
            header.append(f"{TITLES[metric]}, {group} ({int(chosen.sum())})")
            columns.append(_column(board.values[metric][chosen].mean(axis=0), "{:.4f}"))
    return Table(title, header, _rows(columns))


def baseline_table(board: Board) -> Table:
    """Every method against the first neighbour: gain with its interval, win rate, share of the gap to the best."""
    values = board.values["auc_pr"]
    base = values[:, [board.methods.index(BASELINE)]]
    header = ["Method"]
    columns: list[list[TableCell]] = [[TableCell(method) for method in board.methods]]
    for group, chosen in board.groups.items():
        gain = (values - base)[chosen]
        won = ((gain > 0) + 0.5 * (gain == 0)).mean(axis=0)
        room = (values.max(axis=1, keepdims=True) - base)[chosen].mean()
        intervals = [bootstrap_interval(column) for column in gain.T]
        header += [f"Gain, {group}", f"Won, {group}", f"Gap closed, {group}"]
        means = gain.mean(axis=0)
        columns.append(
            [TableCell(f"{m:+.4f} ({a:+.4f} to {b:+.4f})") for m, (a, b) in zip(means, intervals, strict=True)]
        )
        columns.append([TableCell(f"{share:.0%}") for share in won])
        columns.append([TableCell(f"{m / room:.0%}" if room > 0 else "") for m in means])
    notes = ["the gap to the best: what the best method of every table, picked with its labels, would gain"]
    return Table(f"AUC-PR against the first neighbour ({BASELINE})", header, _rows(columns), notes)


def class_tables(board: Board, rows: Sequence[Row]) -> list[Table]:
    """Mean AUC-PR by number of columns, of training rows, and by share of anomalies."""
    known = {str(row["dataset"]): row for row in rows if row["status"] in MEASURED}
    tables = []
    for title, name, edges, number in CLASSES:
        sizes = np.array([float(known[dataset][name]) for dataset in board.datasets])
        places = np.searchsorted(edges, sizes, side="left")
        header, columns = ["Method"], [[TableCell(method) for method in board.methods]]
        for place in np.unique(places):
            chosen = places == place
            bound = f"above {edges[-1]:{number}}" if place == len(edges) else f"to {edges[place]:{number}}"
            header.append(f"{bound} ({int(chosen.sum())})")
            columns.append(_column(board.values["auc_pr"][chosen].mean(axis=0), "{:.4f}"))
        tables.append(Table(f"AUC-PR by {title}", header, _rows(columns)))
    return tables


def alarm_table(rows: Sequence[Row], collection: str) -> Table:
    """Mean observed false alarms of methods with a calibrated threshold, by group."""
    body = []
    chosen = [*experiment_rows(rows, "main"), *experiment_rows(rows, "false-alarms")]
    names = dict.fromkeys((row["experiment"], str(row["variant"])) for row in chosen)
    for experiment, variant in names:
        own = [row for row in chosen if (row["experiment"], row["variant"]) == (experiment, variant)]
        groups = sorted({group_of(collection, str(row["dataset"])) for row in own})
        for group in groups:
            found = [row for row in own if group_of(collection, str(row["dataset"])) == group]
            cells = [_alarm_cell([row[name] for row in found if row.get(name) is not None]) for name in ALARM_COLUMNS]
            if any(cells):
                title = variant if experiment == "main" else f"{variant}, calibrated"
                body.append([TableCell(text) for text in (title, group, *cells)])
    header = ["Method", "Group", *(f"at {rate:g}" for rate in RATES)]
    return Table("Observed false alarms, mean over tables", header, body)


def _alarm_cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = bootstrap_interval(np.array(values, dtype=np.float64))
    return f"{np.mean(values):.4f} ({low:.4f} to {high:.4f})"


def cost_table(rows: Sequence[Row]) -> Table:
    """Seconds and memory of every method."""
    body = []
    for variant in dict.fromkeys(str(row["variant"]) for row in rows):
        own = [row for row in rows if row["variant"] == variant and row["status"] in MEASURED]
        if own:
            seconds = np.array([row["fit_seconds"] + row["score_seconds"] for row in own])
            memory = max(row["peak_rss_mb"] for row in own)
            texts = (variant, f"{np.median(seconds):.3f}", f"{seconds.max():.1f}", f"{seconds.sum():,.0f}")
            body.append([TableCell(text) for text in (*texts, f"{memory:,.0f}")])
    header = ["Method", "Seconds per cell, median", "largest", "all cells", "Peak memory of its process (MB)"]
    return Table("Fit and score: time and memory", header, body)


def _column(values: Values, form: str, largest: bool = True) -> list[TableCell]:
    best: Callable[[Any], Any] = np.max if largest else np.min
    texts = [form.format(value) for value in values]
    top = form.format(best(values))
    return [TableCell(text, BEST if text == top else PLAIN) for text in texts]


def _rows(columns: Sequence[Sequence[TableCell]]) -> list[list[TableCell]]:
    return [list(row) for row in zip(*columns, strict=True)]
