"""Methods by tables: the figures that leaderboards, experiments and the README are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptad.benchmark.collections import group_of
from ptad.benchmark.metrics import TITLES
from ptad.benchmark.statistics import bootstrap_interval
from ptad.benchmark.store import MEASURED, Row
from ptad.benchmark.summary import MOST, Summary, experiment_rows, summarise
from ptad.benchmark.tables import BEST, PLAIN, Table, TableCell
from ptad.errors import DataError

METRICS = ("auc_pr", "auc_roc")

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

    def column(self, method: str, metric: str) -> Values:
        """The figures of one method, (n_datasets,)."""
        return self.values[metric][:, self.methods.index(method)]

    def gains(self, method: str, metric: str) -> Values:
        """What every method has more than one of them, (n_datasets, n_methods)."""
        return self.values[metric] - self.column(method, metric)[:, None]


def make_board(rows: Sequence[Row], collection: str, experiment: str = "main", order: Sequence[str] = ()) -> Board:
    """Gather one experiment; a table on which a method failed or ran out of time counts as chance for it.

    Methods that were tried on less than half of the tables are excluded.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a results file.
    collection : str
        Name of the collection.
    experiment : str
        Whose rows; the main comparison unless told otherwise.
    order : sequence of str
        The methods in this order, instead of the best first.
    """
    chosen = experiment_rows(rows, experiment, order)
    summaries = {metric: summarise(chosen, metric) for metric in METRICS}
    found = {metric: _matrix(summary, chosen) for metric, summary in summaries.items()}
    summary = summaries["auc_pr"]
    tried = ~np.isnan(found["auc_pr"])
    kept = np.flatnonzero(tried.sum(axis=0) >= MOST * len(summary.datasets)) if tried.size else np.arange(0)
    shared = np.flatnonzero(tried[:, kept].all(axis=1)) if len(kept) else kept
    if not len(shared):
        raise DataError("The results hold no table that all methods were measured on. Run 'ptad benchmark run' first.")
    if not order:
        kept = kept[np.argsort(-found["auc_pr"][np.ix_(shared, kept)].mean(axis=0), kind="stable")]
    values = {metric: matrix[np.ix_(shared, kept)] for metric, matrix in found.items()}
    methods, datasets = [summary.methods[i] for i in kept], [summary.datasets[i] for i in shared]
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


def gain_table(boards: Sequence[Board], base: str, title: str) -> Table:
    """What every other method gains over one of them in every group of some boards, with intervals over tables."""
    methods = [method for method in boards[0].methods if method != base]
    header, columns = ["Method"], [[TableCell(method) for method in methods]]
    for board in boards:
        for group, chosen in board.groups.items():
            for metric in METRICS:
                gains = board.gains(base, metric)[chosen][:, [board.methods.index(method) for method in methods]]
                header.append(f"{TITLES[metric]}, {group} ({int(chosen.sum())})")
                columns.append(gain_cells(gains))
    return Table(title, header, table_rows(columns))


def gain_cells(gains: Values) -> list[TableCell]:
    """Mean gains over tables with their intervals."""
    means, (low, high) = gains.mean(axis=0), bootstrap_interval(gains)
    texts = (f"{m:+.4f} ({a:+.4f} to {b:+.4f})" for m, a, b in zip(means, low, high, strict=True))
    return [TableCell(text.replace("-0.0000", "+0.0000")) for text in texts]


def mean_cells(values: Values, form: str = "{:.4f}", largest: bool = True) -> list[TableCell]:
    """Numbers as text, the best in bold."""
    texts = [form.format(value) for value in values]
    top = form.format(values.max() if largest else values.min())
    return [TableCell(text, BEST if text == top else PLAIN) for text in texts]


def table_rows(columns: Sequence[Sequence[TableCell]]) -> list[list[TableCell]]:
    """Columns as the rows of a table."""
    return [list(row) for row in zip(*columns, strict=True)]
