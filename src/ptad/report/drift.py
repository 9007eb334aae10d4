"""Drift of a new table from the training rows, column by column, from binned values.

Each column is represented by one or two of its features. A number is binned by the deciles of the reference rows; a
category has one bin per known value and one for unseen ones. The population stability index (PSI) of a column is
sum((q - p) * ln(q / p)) over its bins. Without drift, PSI * n * m / (n + m) is approximately chi-squared with
(bins - 1) degrees of freedom for n and m rows, so chance alone is not reported as drift; if even strong drift would
mostly look like chance, there is no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from ptad.arrays import Matrix
from ptad.report.numbers import different_texts, integer_text, value_text
from ptad.tables import Schema
from ptad.tables.text_columns import CategoricalColumn, TextColumn

SOME, STRONG = 0.1, 0.25  # the usual rule of thumb for PSI
CHANCE = 0.001  # how often chance alone may look like drift, per column
N_QUANTILES = 10
MOST_LABELS, LABEL_LENGTH = 12, 40  # of the bins of a column

Verdict = Literal["none", "some", "strong", "too few rows"]
_ORDER: dict[Verdict, int] = {"strong": 0, "some": 1, "none": 2, "too few rows": 3}


@dataclass
class Feature:
    """One binned feature of a column; ``place`` is its position in an encoded row."""

    place: int
    edges: Matrix  # upper ends of all bins but the last; empty for a category, whose codes are its bins
    n_bins: int
    reference: Any = 0  # rows in each bin: of the training rows and of the table
    counts: Any = 0

    @property
    def is_category(self) -> bool:
        return not len(self.edges)

    def bin(self, rows: Matrix) -> NDArray[np.int64]:
        """Return the number of encoded rows in each bin; missing cells are in none."""
        cells = rows[:, self.place]
        cells = cells[~np.isnan(cells)]
        places = cells.astype(np.int64) if self.is_category else np.searchsorted(self.edges, cells, side="left")
        return np.bincount(places, minlength=self.n_bins)

    @property
    def psi(self) -> float:
        """Population stability index of the counts against the reference."""
        # half a row more in every bin: without it, an empty bin would have an infinite index
        p = (self.reference + 0.5) / (self.reference + 0.5).sum()
        q = (self.counts + 0.5) / (self.counts + 0.5).sum()
        return float(np.sum((q - p) * np.log(q / p)))

    @property
    def verdict(self) -> Verdict:
        """The verdict on drift; "too few rows" where chance and drift cannot be distinguished."""
        n, m = float(self.reference.sum()), float(self.counts.sum())
        freedom = max(int(np.count_nonzero(self.reference + self.counts)) - 1, 1)
        noise = (n + m) / max(n * m, 1.0)
        chance = float(chdtri(freedom, CHANCE) * noise)  # the upper quantile of chi-squared
        if self.psi >= max(SOME, chance):
            return "strong" if self.psi >= STRONG else "some"
        # the index under strong drift is about STRONG + freedom * noise: below ``chance`` it would not be detected
        return "none" if chance <= STRONG + freedom * noise else "too few rows"


class DriftTally:
    """Counts binned values of a table, batch by batch, and compares them with the training rows."""

    def __init__(self, schema: Schema, reference: Matrix, *, training_table: bool = False) -> None:
        """``reference`` are encoded training rows, (n_reference, n_features); the table may be the training table."""
        self.schema = schema
        self.n_rows, self.n_reference = 0, len(reference)
        self.missing = np.zeros(len(schema.names), dtype=np.int64)
        self.starts = schema.features.starts
        self.features: list[list[Feature]] = []
        for column, start in zip(schema.columns, self.starts, strict=True):
            features = _features(column, int(start), reference)
            for feature in features:
                feature.reference = feature.bin(reference)
            if isinstance(column, TextColumn) and not training_table:  # whose rows were counted themselves
                features[0].reference = _known_and_new(column, int(features[0].reference.sum()))
            self.features.append(features)

    def add(self, rows: Matrix) -> None:
        """Count some encoded rows."""
        self.n_rows += len(rows)
        self.missing += np.isnan(rows[:, self.starts]).sum(axis=0)
        for feature in chain.from_iterable(self.features):
            feature.counts = feature.counts + feature.bin(rows)

    def columns(self, *, labels: bool) -> list[dict[str, Any]]:
        """Return one entry per column, the most drifted first; without ``labels`` no value of the table is named."""
        entries = [self._column(j, labels) for j in range(len(self.features))]
        return sorted(entries, key=lambda entry: (_ORDER[entry["verdict"]], -entry["psi"]))

    def _column(self, j: int, labels: bool) -> dict[str, Any]:
        column = self.schema.columns[j]
        shown = max(self.features[j], key=lambda f: f.psi)
        before = float(self.schema.missing_rate[j])
        n_missing, n_before = int(self.missing[j]), round(before * self.n_reference)
        # whether a cell is missing is another feature, with two bins
        presence = Feature(0, np.zeros(1), 2)
        presence.reference = np.array([n_before, self.n_reference - n_before])
        presence.counts = np.array([n_missing, self.n_rows - n_missing])
        drifted = presence.verdict in ("some", "strong") and _ORDER[presence.verdict] <= _ORDER[shown.verdict]
        worst = presence if drifted else shown
        order = _shown_bins(shown)
        return {
            "name": column.name,
            "type": column.type,
            "psi": round(worst.psi, 4),
            "verdict": worst.verdict,
            "missing": [round(before, 4), round(n_missing / max(self.n_rows, 1), 4)],
            "before": _shares(shown.reference, order),
            "now": _shares(shown.counts, order),
            "labels": _bin_labels(column, shown, order) if labels else None,
        }


def _features(column: Any, start: int, reference: Matrix) -> list[Feature]:
    if column.type == "categorical":
        return [Feature(start, np.empty(0), column.n_categories + 1)]
    if column.type == "text":  # whether the text is new, and its length
        return [_binary(start + 1), _deciles(start + 2, reference)]
    return [_binary(start) if column.type == "boolean" else _deciles(start, reference)]


def _binary(place: int) -> Feature:
    """Return a feature that is 0 or 1."""
    return Feature(place, np.array([0.5]), 2)


def _known_and_new(column: TextColumn, n_rows: int) -> NDArray[np.int64]:
    """Return how many of ``n_rows`` training rows have a known and a new text, if a row itself is not counted.

    A text is known if it occurs twice without the row itself, so three times in all.
    """
    known = round(n_rows * sum(n for n in column.counts.values() if n > 2) / max(column.n_rows, 1))
    return np.array([known, n_rows - known])


def _deciles(place: int, reference: Matrix) -> Feature:
    """Return bins with a tenth of the reference rows each, one below all of them and one above."""
    values = reference[:, place]
    values = values[~np.isnan(values)]
    if not len(values):
        return Feature(place, np.zeros(1), 2)
    inner = np.quantile(values, np.linspace(0, 1, N_QUANTILES + 1), method="inverted_cdf")
    # bins are (low, high]: the lowest edge is just below the smallest value, which is then inside
    inner[0] = np.nextafter(inner[0], -np.inf)
    edges = np.unique(inner)
    return Feature(place, edges, len(edges) + 1)


def _shown_bins(feature: Feature) -> NDArray[np.int64]:
    """Return the bins that the page shows; of many categories, the most frequent ones."""
    if not feature.is_category:
        return np.arange(feature.n_bins)
    both = feature.reference / max(feature.reference.sum(), 1) + feature.counts / max(feature.counts.sum(), 1)
    return np.argsort(-both, kind="stable")[:MOST_LABELS]


def _shares(counts: NDArray[np.int64], order: NDArray[np.int64]) -> list[float]:
    total = float(counts.sum()) or 1.0
    shown = [round(float(c) / total, 4) for c in counts[order]]
    rest = float(counts.sum() - counts[order].sum())
    return shown if len(order) == len(counts) else [*shown, round(rest / total, 4)]


def _bin_labels(column: Any, feature: Feature, order: NDArray[np.int64]) -> list[str]:
    """Return the names of the shown bins, and one for all others if there are any."""
    n_bins = feature.n_bins
    if isinstance(column, CategoricalColumn):
        values = [_cut(value) for value in column.values] + ["unseen category"]
        return [values[i] for i in order] + ([] if len(order) == n_bins else ["all others"])
    if column.type == "boolean":
        return ["false", "true"]
    if column.type == "text":
        return ["known", "new"] if n_bins == 2 else [f"length group {i + 1} of {n_bins}" for i in range(n_bins)]
    return _ranges(column, feature.edges)


def _ranges(column: Any, edges: Matrix) -> list[str]:
    raw = np.zeros((len(edges), len(column.labels)))
    raw[:, 0] = edges
    raw[0, 0] = np.nextafter(edges[0], np.inf)  # the smallest value, which is just above the lowest edge
    values = column.decode(raw).tolist()
    starts = values
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        # a bin begins after the end of the previous one; a bin of a single number has its name
        starts = [values[0], *(min(a + 1, b) for a, b in pairwise(values[1:]))]
        names = {value: integer_text(value) for value in (*starts, *values)}
    elif isinstance(values[0], float):
        known = sorted(set(values))
        names = dict(zip(known, different_texts(known), strict=True))
    else:
        names = {value: _cut(value) for value in values}
    bins = [(names[a], names[b]) for a, b in zip(starts, values[1:], strict=False)]
    inner = [a if a == b else f"{a} to {b}" for a, b in bins]
    return [f"below {names[values[0]]}", *inner, f"above {names[values[-1]]}"]


def _cut(value: Any) -> str:
    return str(value_text(value, length=LABEL_LENGTH))
