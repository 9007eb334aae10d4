"""From rows of results to one value per method and table: the mean over seeds, under the better scaling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ptad.benchmark.collections import group_of
from ptad.benchmark.peers import PEERS
from ptad.benchmark.results import MEASURED, Row, precedence
from ptad.errors import DataError, needs_extra

if TYPE_CHECKING:
    import pandas as pd

#: Methods measured on a smaller share of the tables are excluded from averages, ranks and tests.
MIN_COVERAGE = 0.5
METRICS = ("auc_pr", "auc_roc")


def current(rows: Iterable[Row]) -> list[Row]:
    """Return one row per variant, table, seed and scaling: the last measured one, else the last.

    The file may hold a cell under several configurations (another row cap, an older release), which must not be
    averaged.
    """
    groups = grouped(rows, itemgetter("experiment", "variant", "dataset", "seed", "scaling"))
    return [max(reversed(group), key=precedence) for group in groups.values()]


def experiment_rows(rows: Iterable[Row], experiment: str, order: Sequence[str] = ()) -> list[Row]:
    """Return the current rows of one experiment, sorted by variant; by default in the order of the registry of methods.

    The order of the file is that in which parallel workers happened to finish.
    """
    places = {name: place for place, name in enumerate(order or PEERS)}
    members = current(row for row in rows if row["experiment"] == experiment)
    return sorted(members, key=lambda row: places.get(str(row["variant"]), len(places)))


def grouped(rows: Iterable[Row], key: Callable[[Row], Any] = itemgetter("variant")) -> dict[Any, list[Row]]:
    """Group rows by variant, or by ``key``, in the order of first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def short_reason(row: Row) -> str:
    """Return status and first sentence of the reason; what follows is advice or a memory dump."""
    return f"{row['status']}: {str(row['reason']).split('. ')[0].rstrip('.')}"


def scaling_means(rows: Sequence[Row], metric: str) -> dict[str, float]:
    """Return the mean over the tables under every scaling of one method, on splits that all scalings have.

    One scaling may have more seeds than the other; including those would compare different splits.
    """
    measured = [row for row in rows if row["status"] in MEASURED]
    if not measured:
        return {}
    splits = _frame(measured).pivot_table(metric, ["dataset", "seed"], "scaling")
    shared = splits.reindex(columns=sorted({str(row["scaling"]) for row in rows})).dropna()
    means: dict[str, float] = shared.groupby("dataset").mean().mean().dropna().to_dict()
    return means


def better_scaling(rows: Sequence[Row]) -> str:
    """Return the scaling with the higher mean AUC-PR over the tables; that with most rows if they share no split."""
    names = sorted({str(row["scaling"]) for row in rows})
    means = scaling_means(rows, "auc_pr") if len(names) > 1 else {}
    counts = Counter(str(row["scaling"]) for row in rows if row["status"] in MEASURED)
    return max(names, key=lambda name: (means.get(name, 0.0), counts[name]))


class Summary:
    """Metrics of all methods on all tables, from the rows of one experiment."""

    def __init__(self, rows: Iterable[Row]) -> None:
        rows = current(rows)
        variants = grouped(rows)
        self.methods = list(variants)
        self.datasets = sorted({str(row["dataset"]) for row in rows})
        # for all tables and metrics, the scaling with the better mean AUC-PR
        self.scaling = {method: better_scaling(group) for method, group in variants.items()}
        rows_used = [row for row in rows if row["scaling"] == self.scaling[str(row["variant"])]]
        # of every pair of dataset and method that was tried: why seeds are missing or capped
        self.reasons: dict[tuple[str, str], list[str]] = {}
        for row in sorted(rows_used, key=lambda row: row["status"] in MEASURED):
            reasons = self.reasons.setdefault((str(row["dataset"]), str(row["variant"])), [])
            if row["status"] != "ok" and short_reason(row) not in reasons:
                reasons.append(short_reason(row))
        self._measured = _frame([row for row in rows_used if row["status"] in MEASURED])
        self._prevalence = {str(row["dataset"]): row.get("prevalence") for row in rows if row["status"] in MEASURED}

    def values(self, metric: str, how: str = "mean") -> pd.DataFrame:
        """Return mean, ``std`` or ``count`` over the seeds, (n_datasets, n_methods); NaN for cells not measured."""
        if self._measured.empty:
            return _frame(np.nan, self.datasets, self.methods)
        values = self._measured.astype({metric: float}).groupby(["dataset", "variant"])[metric].agg(how)
        return values.unstack().reindex(index=self.datasets, columns=self.methods)

    def with_chance(self, metric: str) -> pd.DataFrame:
        """Return the means, with the value of random scores where a method was tried and failed."""
        values = self.values(metric)
        for dataset, method in self.reasons:
            if np.isnan(values.at[dataset, method]) and dataset in self._prevalence:
                values.at[dataset, method] = self._prevalence[dataset] if metric == "auc_pr" else 0.5
        return values


def _frame(*content: Any) -> pd.DataFrame:
    with needs_extra("bench", "A table of results", "pandas"):
        import pandas as pd
    return pd.DataFrame(*content)


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Return the methods measured on most tables, and the tables that all of these were measured on.

    Averages, ranks and tests are only fair on tables that all methods have. A method with few tables would leave few
    for the others, so it is excluded.
    """
    methods = values.loc[:, values.notna().sum() >= MIN_COVERAGE * len(values)]
    return methods.dropna() if methods.shape[1] else methods.iloc[:0]


@dataclass(frozen=True)
class Board:
    """Metrics of all methods on the tables that all of them were measured on."""

    collection: str
    methods: list[str]  # best mean AUC-PR first
    datasets: list[str]
    values: dict[str, Any]  # metric -> (n_datasets, n_methods)
    scaling: dict[str, str]  # by method

    @property
    def groups(self) -> dict[str, Any]:
        """The tables of every group, as masks; ``all`` comes last if there are several groups."""
        names = np.array([group_of(self.collection, dataset) for dataset in self.datasets])
        masks = {str(group): names == group for group in np.unique(names)}
        return masks if len(masks) == 1 else {**masks, "all": np.ones(len(names), dtype=bool)}

    def column(self, method: str, metric: str) -> Any:
        """Return the values of one method, (n_datasets,)."""
        return self.values[metric][:, self.methods.index(method)]

    def gains(self, method: str, metric: str) -> Any:
        """Return the differences of all methods to one of them, (n_datasets, n_methods)."""
        return self.values[metric] - self.column(method, metric)[:, None]


def make_board(rows: Iterable[Row], collection: str, experiment: str = "main", order: Sequence[str] = ()) -> Board:
    """Collect the metrics of one experiment; a table on which a method failed or timed out counts as random scores.

    Methods that were tried on less than half of the tables are excluded. They are in the given order, or best first.
    """
    summary = Summary(experiment_rows(rows, experiment, order))
    tables = {metric: summary.with_chance(metric) for metric in METRICS}
    shared = complete(tables["auc_pr"])
    if shared.empty:
        raise DataError("The results hold no table that all methods were measured on. Run 'ptad benchmark run' first.")
    methods = list(shared.columns)
    if not order:
        best = np.argsort(-shared.to_numpy().mean(axis=0), kind="stable")
        methods = [methods[place] for place in best]
    values = {metric: table.loc[shared.index, methods].to_numpy() for metric, table in tables.items()}
    return Board(collection, methods, list(shared.index), values, summary.scaling)
