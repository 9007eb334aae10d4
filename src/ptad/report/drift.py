"""How far a new table has moved from the training rows, column by column, from binned values.

Each column is reduced to one or two encoded features, binned by the deciles of the reference rows kept in the model
(a category has one bin per value). The population stability index of a column is sum((q - p) * ln(q / p)) over
its bins. Without drift, PSI * n * m / (n + m) is close to a chi-squared variable with (bins - 1) degrees of freedom for
n and m rows, so a small table is not called drifted for chance alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from ptad.tables import Schema
from ptad.tables.category_column import CategoryColumn

SOME, STRONG = 0.1, 0.25  # the usual rule of thumb for PSI
CHANCE = 0.001  # how often chance alone may look like drift, per column
N_QUANTILES = 10
MOST_LABELS = 12

Verdict = Literal["steady", "some", "strong"]


@dataclass
class Feature:
    """One binned feature of a column: ``place`` and ``width`` say where it is in an encoded row."""

    place: int
    width: int  # more than 1: a one-hot group
    edges: NDArray[np.float64]  # upper ends of all bins but the last; empty for a one-hot group
    n_bins: int
    reference: NDArray[np.float64] = field(init=False)
    counts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.reference = np.zeros(self.n_bins)
        self.counts = np.zeros(self.n_bins, dtype=np.int64)

    def bin(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of the encoded rows fall into each bin; missing cells fall into none."""
        cells = x[:, self.place : self.place + self.width]
        cells = cells[~np.isnan(cells[:, 0])]
        places = np.argmax(cells, axis=1) if self.width > 1 else np.searchsorted(self.edges, cells[:, 0], side="left")
        return np.bincount(places, minlength=self.n_bins)

    @property
    def psi(self) -> float:
        """Population stability index of the counts against the reference."""
        # half a row in every bin keeps empty bins finite
        p = (self.reference + 0.5) / (self.reference + 0.5).sum()
        q = (self.counts + 0.5) / (self.counts + 0.5).sum()
        return float(np.sum((q - p) * np.log(q / p)))

    @property
    def chance_psi(self) -> float:
        """PSI that chance alone reaches with probability ``CHANCE``."""
        bins = np.count_nonzero(self.reference + self.counts)
        n, m = float(self.reference.sum()), float(self.counts.sum())
        return float(chi2.isf(CHANCE, max(bins - 1, 1)) * (n + m) / max(n * m, 1.0))


class DriftTally:
    """Collects what is needed to compare a table with the training rows, batch by batch."""

    def __init__(self, schema: Schema, reference_rows: NDArray[Any]) -> None:
        """``reference_rows`` are encoded: (n_members, n_reference, n_encoded)."""
        self.schema = schema
        self.n_rows = 0
        self.missing = np.zeros(len(schema.names), dtype=np.int64)
        self.starts = np.flatnonzero(np.diff(schema.groups, prepend=-1))
        members = np.asarray(reference_rows)
        rows = members.reshape(-1, members.shape[-1])
        self.features = [
            _features(column, int(start), schema, rows)
            for column, start in zip(schema.columns, self.starts, strict=True)
        ]
        for features in self.features:
            for feature in features:
                # members keep overlapping samples of one training table: together they count as one of them
                feature.reference = feature.bin(rows) / len(members)

    def add(self, x: NDArray[Any]) -> None:
        """Count some encoded rows."""
        self.n_rows += len(x)
        self.missing += np.isnan(x[:, self.starts]).sum(axis=0)
        for features in self.features:
            for feature in features:
                feature.counts += feature.bin(x)

    def columns(self, *, labels: bool) -> list[dict[str, Any]]:
        """Return one entry per column, the most drifted first; without ``labels`` no value of the table is named."""
        entries = [self._column(j, labels) for j in range(len(self.features))]
        order = {"strong": 0, "some": 1, "steady": 2}
        return sorted(entries, key=lambda entry: (order[entry["verdict"]], -entry["psi"]))

    def _column(self, j: int, labels: bool) -> dict[str, Any]:
        name = self.schema.names[j]
        feature = max(self.features[j], key=lambda f: f.psi)
        before = float(self.schema.missing_rate[self.starts[j]])
        now = float(self.missing[j] / max(self.n_rows, 1))
        # presence is a feature of its own with two bins
        presence = _two_bins(before, float(feature.reference.sum()), now, self.n_rows)
        worst = max((feature, presence), key=lambda f: f.psi if f.psi > f.chance_psi else 0.0)
        kind = self.schema.kinds[name]
        shown = _Shown(self.schema, feature, j)
        return {
            "name": name,
            "kind": kind,
            "psi": round(worst.psi, 4),
            "verdict": _verdict(worst.psi, worst.chance_psi),
            "missing": [round(before, 4), round(now, 4)],
            "before": _shares(feature.reference, shown.order),
            "now": _shares(feature.counts, shown.order),
            "labels": shown.labels() if labels else None,
        }


class _Shown:
    """Which bins of a feature the page shows, and what it calls them."""

    def __init__(self, schema: Schema, feature: Feature, j: int) -> None:
        self.schema, self.feature, self.j = schema, feature, j
        both = feature.reference / max(feature.reference.sum(), 1) + feature.counts / max(feature.counts.sum(), 1)
        if feature.width > 1:  # the most frequent categories, by share; the others are summed up
            self.order = np.argsort(-both, kind="stable")[:MOST_LABELS]
        else:
            self.order = np.arange(len(both))

    def labels(self) -> list[str]:
        column = self.schema.columns[self.j]
        if isinstance(column, CategoryColumn):
            values = [_cut(value) for value in column.values] + ["never seen before"]
            names = [values[i] for i in self.order]
            return names if len(self.order) == len(values) else [*names, "all others"]
        if column.kind == "boolean":
            return ["false", "true"]
        if column.kind == "text":
            n = self.feature.n_bins
            return ["known", "new"] if n == 2 else [f"length group {i + 1} of {n}" for i in range(n)]
        edges = [_cut(str(value)) for value in self._decoded_edges()]
        inner = [f"{a} to {b}" for a, b in pairwise(edges)]
        return [f"below {edges[0]}", *inner, f"above {edges[-1]}"]

    def _decoded_edges(self) -> list[Any]:
        column, place = self.schema.columns[self.j], self.feature.place
        raw = np.zeros((len(self.feature.edges), len(column.labels)))
        raw[:, 0] = self.feature.edges * self.schema.scale[place] + self.schema.center[place]
        scale = self.schema.scale[place : place + len(column.labels)]
        values = column.decode(raw, scale)
        return [f"{v:.4g}" if isinstance(v, float) else str(v) for v in values.tolist()]


def _features(column: Any, start: int, schema: Schema, rows: NDArray[Any]) -> list[Feature]:
    if column.kind == "category":
        return [Feature(start, len(column.labels), np.empty(0), len(column.labels))]
    if column.kind == "text":  # whether the value is a new one, and how long it is
        return [_halved(start + 1, schema), _deciles(start + 2, rows)]
    return [_halved(start, schema) if column.kind == "boolean" else _deciles(start, rows)]


def _halved(place: int, schema: Schema) -> Feature:
    """A feature that is 0 or 1."""
    return Feature(place, 1, np.array([(0.5 - schema.center[place]) / schema.scale[place]]), 2)


def _deciles(place: int, rows: NDArray[Any]) -> Feature:
    """Bins that hold a tenth of the reference rows each, one below all of them and one above."""
    values = rows[:, place]
    values = values[~np.isnan(values)]
    if not len(values):
        return Feature(place, 1, np.zeros(1), 2)
    inner = np.quantile(values, np.linspace(0, 1, N_QUANTILES + 1), method="inverted_cdf")
    # bins are (low, high]: the lowest edge lies a hair below the smallest value, which then counts as inside
    inner[0] = np.nextafter(np.float32(inner[0]), np.float32(-np.inf))
    edges = np.unique(inner.astype(np.float64))
    return Feature(place, 1, edges, len(edges) + 1)


def _two_bins(before: float, n_before: float, now: float, n_now: int) -> Feature:
    shares = np.array([[before, 1 - before], [now, 1 - now]])
    feature = Feature(0, 1, np.zeros(1), 2)
    feature.reference = shares[0] * n_before
    feature.counts = np.rint(shares[1] * n_now).astype(np.int64)
    return feature


def _verdict(psi: float, chance: float) -> Verdict:
    if psi < max(SOME, chance):
        return "steady"
    return "strong" if psi >= STRONG else "some"


def _shares(counts: NDArray[Any], order: NDArray[np.int64]) -> list[float]:
    total = float(counts.sum()) or 1.0
    shown = [round(float(c) / total, 4) for c in counts[order]]
    rest = float(counts.sum() - counts[order].sum())
    return shown if len(order) == len(counts) else [*shown, round(rest / total, 4)]


def _cut(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
