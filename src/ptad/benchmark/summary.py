"""From rows of results to one figure per method and table: means over seeds, the better scaling, averages, ranks."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from statistics import fmean

import numpy as np

from ptad.benchmark.peers import peer_names
from ptad.benchmark.store import MEASURED, Row

#: The share of the tables that a method must be measured on to take part in averages, ranks and tests.
MOST = 0.5


@dataclass(frozen=True)
class Figure:
    """One method on one table.

    Attributes
    ----------
    mean, std : float or None
        Over the seeds; None where nothing was measured.
    n_seeds : int
        Measured seeds.
    reasons : tuple of str
        Why seeds are capped or missing.
    """

    mean: float | None
    std: float | None
    n_seeds: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """Figures of all methods on all tables for one metric.

    Attributes
    ----------
    metric : str
        Column of the results.
    methods, datasets : tuple of str
        In order of appearance.
    figures : dict
        ``(method, dataset) -> Figure`` under the scaling that counts.
    scaling : dict
        ``method -> scaling`` that counts: the one with the better mean over the tables.
    """

    metric: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    scaling: dict[str, str] = field(default_factory=dict)

    def value(self, method: str, dataset: str) -> float:
        """The mean, NaN where there is none."""
        mean = self.figures[method, dataset].mean if (method, dataset) in self.figures else None
        return float("nan") if mean is None else mean

    def matrix(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Means, shape (n_datasets, n_methods)."""
        return np.array([[self.value(m, d) for m in self.methods] for d in self.datasets], dtype=np.float64)

    def complete(self) -> tuple[list[str], list[str]]:
        """Methods measured on most tables, and the tables on which all of those have a figure.

        Averages, ranks and tests are only fair on tables that every method has; a method with few of them would leave
        few to all others, so it takes no part.
        """
        measured = ~np.isnan(self.matrix())
        kept = [j for j in range(len(self.methods)) if measured[:, j].sum() >= MOST * len(self.datasets)]
        rows = [i for i in range(len(self.datasets)) if kept and measured[i, kept].all()]
        return [self.methods[j] for j in kept], [self.datasets[i] for i in rows]


def summarise(rows: Iterable[Row], metric: str) -> Summary:
    """Gather the rows of one experiment for one metric; AUC-PR decides which scaling of a method counts for all."""
    rows = current(rows)
    groups = by_variant(rows)
    methods = tuple(groups)
    datasets = tuple(sorted({str(row["dataset"]) for row in rows}))
    summary = Summary(metric, methods, datasets)
    for method, own in groups.items():
        scaling = better_scaling(own, "auc_pr")
        summary.scaling[method] = scaling
        cells: dict[str, list[Row]] = {}
        for row in own:
            if row["scaling"] == scaling:
                cells.setdefault(str(row["dataset"]), []).append(row)
        for dataset, found in cells.items():
            summary.figures[method, dataset] = _figure(found, metric)
    return summary


def by_variant(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of every variant, in the order of their first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["variant"]), []).append(row)
    return groups


def current(rows: Iterable[Row]) -> list[Row]:
    """One row per variant, table, seed and scaling: the last measured one, else the last.

    A cell may stand in the file under several configurations (another row cap, an older release); averaging over them
    would mix different things.
    """
    chosen: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in ("experiment", "variant", "dataset", "seed", "scaling"))
        known = chosen.get(key)
        if known is None or _precedence(row) >= _precedence(known):
            chosen[key] = row
    return list(chosen.values())


def experiment_rows(rows: Iterable[Row], experiment: str, order: Sequence[str] = ()) -> list[Row]:
    """The current rows of one experiment, its variants in the given order.

    By default that of the registry of methods: rows stand in the order in which parallel workers happened to finish.
    """
    places = {name: place for place, name in enumerate(order or peer_names())}
    chosen = current(row for row in rows if row["experiment"] == experiment)
    return sorted(chosen, key=lambda row: places.get(str(row["variant"]), len(places)))


def short_reason(row: Row) -> str:
    """Status and reason of a cell for a note: the first sentence, since what follows is advice or a memory dump."""
    return f"{row['status']}: {str(row['reason']).split('. ')[0].rstrip('.')}"


def _precedence(row: Row) -> tuple[bool, str]:
    return row["status"] in MEASURED, str(row.get("finished_at") or "")


def better_scaling(rows: Sequence[Row], metric: str) -> str:
    """The scaling with the higher mean over the tables; with most rows where no split has all of them."""
    if len({row["scaling"] for row in rows}) == 1:
        return str(rows[0]["scaling"])
    means = scaling_means(rows, metric)
    counts = Counter(str(row["scaling"]) for row in rows if row["status"] in MEASURED)
    return max(sorted({str(row["scaling"]) for row in rows}), key=lambda name: (means.get(name, 0.0), counts[name]))


def scaling_means(rows: Sequence[Row], metric: str) -> dict[str, float]:
    """The mean over the tables under every scaling of one method, on splits that all scalings were measured on.

    A scaling may have more seeds than the other; counting those would compare different splits.
    """
    values: dict[str, dict[tuple[str, int], float]] = {str(row["scaling"]): {} for row in rows}
    for row in rows:
        if row["status"] in MEASURED:
            values[str(row["scaling"])][str(row["dataset"]), int(row["seed"])] = row[metric]
    seeds: dict[str, list[tuple[str, int]]] = {}
    for key in sorted(set.intersection(*(set(found) for found in values.values()))):
        seeds.setdefault(key[0], []).append(key)
    if not seeds:
        return {}
    return {
        scaling: fmean(fmean(found[key] for key in keys) for keys in seeds.values())
        for scaling, found in values.items()
    }


def _figure(cells: Sequence[Row], metric: str) -> Figure:
    values = [row[metric] for row in cells if row["status"] in MEASURED and row[metric] is not None]
    lost = [row for row in cells if row["status"] not in MEASURED]
    capped = [row for row in cells if row["status"] == "capped"]
    reasons = tuple(dict.fromkeys(short_reason(row) for row in (*lost, *capped)))
    mean = fmean(values) if values else None
    return Figure(mean, float(np.std(values, ddof=1)) if len(values) > 1 else None, len(values), reasons)


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables; ``suspect`` says why it should not be trusted."""

    auc_pr: float
    auc_roc: float
    suspect: str


@cache
def published() -> dict[tuple[str, str], Published]:
    """The paper's two main tables by (method, dataset), with ``average`` as a table of its own."""
    text = files("ptad.benchmark").joinpath("published.csv").read_text(encoding="utf-8")
    return {
        (row["method"], row["dataset"]): Published(float(row["auc_pr"]), float(row["auc_roc"]), row["suspect"])
        for row in csv.DictReader(text.splitlines())
    }
