"""From rows of results to one figure per method and table: means over seeds, under the scaling that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ptad.benchmark.collections import group_of
from ptad.benchmark.peers import PEERS
from ptad.benchmark.store import MEASURED, Row, precedence
from ptad.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

#: The share of the tables that a method must be measured on to take part in averages, ranks and tests.
MOST = 0.5
METRICS = ("auc_pr", "auc_roc")


def current(rows: Iterable[Row]) -> list[Row]:
    """One row per variant, table, seed and scaling: the last measured one, else the last.

    A cell may stand in the file under several configurations (another row cap, an older release); averaging over them
    would mix different things.
    """
    chosen: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in ("experiment", "variant", "dataset", "seed", "scaling"))
        if key not in chosen or precedence(row) >= precedence(chosen[key]):
            chosen[key] = row
    return list(chosen.values())


def experiment_rows(rows: Iterable[Row], experiment: str, order: Sequence[str] = ()) -> list[Row]:
    """The current rows of one experiment, its variants in the given order.

    By default that of the registry of methods: rows stand in the order in which parallel workers happened to finish.
    """
    places = {name: place for place, name in enumerate(order or PEERS)}
    chosen = current(row for row in rows if row["experiment"] == experiment)
    return sorted(chosen, key=lambda row: places.get(str(row["variant"]), len(places)))


def grouped(rows: Iterable[Row], key: Callable[[Row], Any] = itemgetter("variant")) -> dict[Any, list[Row]]:
    """The rows of every variant, or of what else ``key`` says, in the order of their first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def short_reason(row: Row) -> str:
    """Status and reason of a cell for a note: the first sentence, since what follows is advice or a memory dump."""
    return f"{row['status']}: {str(row['reason']).split('. ')[0].rstrip('.')}"


def scaling_means(rows: Sequence[Row], metric: str) -> dict[str, float]:
    """The mean over the tables under every scaling of one method, on splits that all scalings were measured on.

    A scaling may have more seeds than the other; counting those would compare different splits.
    """
    measured = [row for row in rows if row["status"] in MEASURED]
    if not measured:
        return {}
    splits = _frame(measured).pivot_table(metric, ["dataset", "seed"], "scaling")
    shared = splits.reindex(columns=sorted({str(row["scaling"]) for row in rows})).dropna()
    means: dict[str, float] = shared.groupby("dataset").mean().mean().dropna().to_dict()
    return means


def better_scaling(rows: Sequence[Row]) -> str:
    """The scaling with the higher mean AUC-PR over the tables; with most rows where no split has all of them."""
    names = sorted({str(row["scaling"]) for row in rows})
    means = scaling_means(rows, "auc_pr") if len(names) > 1 else {}
    counts = Counter(str(row["scaling"]) for row in rows if row["status"] in MEASURED)
    return max(names, key=lambda name: (means.get(name, 0.0), counts[name]))


class Summary:
    """Figures of all methods of one experiment, whose rows are given, on all tables.

    Attributes
    ----------
    methods, datasets : list of str
        In order of appearance, and sorted.
    scaling : dict
        ``method -> scaling`` that counts, for all tables and metrics: the one with the better mean AUC-PR.
    reasons : dict
        ``(dataset, method) -> texts``: why seeds are missing or capped; a key for everything that was tried.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        rows = current(rows)
        variants = grouped(rows)
        self.methods = list(variants)
        self.datasets = sorted({str(row["dataset"]) for row in rows})
        self.scaling = {method: better_scaling(own) for method, own in variants.items()}
        counted = [row for row in rows if row["scaling"] == self.scaling[str(row["variant"])]]
        self.reasons: dict[tuple[str, str], list[str]] = {}
        for row in sorted(counted, key=lambda row: row["status"] in MEASURED):
            known = self.reasons.setdefault((str(row["dataset"]), str(row["variant"])), [])
            if row["status"] != "ok" and short_reason(row) not in known:
                known.append(short_reason(row))
        self._measured = _frame([row for row in counted if row["status"] in MEASURED])
        self._prevalence = {str(row["dataset"]): row.get("prevalence") for row in rows if row["status"] in MEASURED}

    def values(self, metric: str, how: str = "mean") -> pd.DataFrame:
        """Mean, ``std`` or ``count`` over the seeds, (n_datasets, n_methods); NaN where there is none."""
        if self._measured.empty:
            return _frame(np.nan, self.datasets, self.methods)
        found = self._measured.astype({metric: float}).groupby(["dataset", "variant"])[metric].agg(how)
        return found.unstack().reindex(index=self.datasets, columns=self.methods)

    def with_chance(self, metric: str) -> pd.DataFrame:
        """The means, and what guessing gives where a method was tried and lost."""
        found = self.values(metric)
        for dataset, method in self.reasons:
            if np.isnan(found.at[dataset, method]) and dataset in self._prevalence:
                found.at[dataset, method] = self._prevalence[dataset] if metric == "auc_pr" else 0.5
        return found


def _frame(*content: Any) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("pandas", "bench", "A table of results") from error
    return pd.DataFrame(*content)


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Methods with a figure on most tables, and the tables on which all of those have one.

    Averages, ranks and tests are only fair on tables that every method has; a method with few of them would leave few
    to all others, so it takes no part.
    """
    kept = values.loc[:, values.notna().sum() >= MOST * len(values)]
    return kept.dropna() if kept.shape[1] else kept.iloc[:0]


@dataclass(frozen=True)
class Board:
    """Figures of all methods on the tables that all of them were measured on."""

    collection: str
    methods: list[str]  # best mean AUC-PR first
    datasets: list[str]
    values: dict[str, Any]  # metric -> (n_datasets, n_methods)
    scaling: dict[str, str]  # the one that counts for a method

    @property
    def groups(self) -> dict[str, Any]:
        """The tables of every group, as masks; all tables come last where there are several groups."""
        names = np.array([group_of(self.collection, dataset) for dataset in self.datasets])
        found = {str(group): names == group for group in np.unique(names)}
        return found if len(found) == 1 else {**found, "all": np.ones(len(names), dtype=bool)}

    def column(self, method: str, metric: str) -> Any:
        """The figures of one method, (n_datasets,)."""
        return self.values[metric][:, self.methods.index(method)]

    def gains(self, method: str, metric: str) -> Any:
        """What every method has more than one of them, (n_datasets, n_methods)."""
        return self.values[metric] - self.column(method, metric)[:, None]


def make_board(rows: Iterable[Row], collection: str, experiment: str = "main", order: Sequence[str] = ()) -> Board:
    """Gather one experiment; a table on which a method failed or ran out of time counts as chance for it.

    Methods that were tried on less than half of the tables are excluded. ``order`` lists the methods; without it the
    best stands first.
    """
    summary = Summary(experiment_rows(rows, experiment, order))
    found = {metric: summary.with_chance(metric) for metric in METRICS}
    shared = complete(found["auc_pr"])
    if shared.empty:
        raise DataError("The results hold no table that all methods were measured on. Run 'ptad benchmark run' first.")
    methods = list(shared.columns)
    if not order:
        best = np.argsort(-shared.to_numpy().mean(axis=0), kind="stable")
        methods = [methods[place] for place in best]
    values = {metric: table.loc[shared.index, methods].to_numpy() for metric, table in found.items()}
    return Board(collection, methods, list(shared.index), values, summary.scaling)
