"""Bins of a feature, and the choice of pairs of features to count."""

from __future__ import annotations

import numpy as np

from ptad.arrays import Indices, Matrix, count_below
from ptad.tables.features import Features

COARSE_BINS, SAMPLE_ROWS, MAX_COMPARED = 4, 2_000, 100  # for the choice among many pairs
NO_EDGE = np.finfo(np.float64).max  # fills the list of a feature that has fewer bins than others


def bin_edges(values: Matrix, n_bins: int) -> Matrix:
    """Return the edges between the bins of a number: between all distinct values if they are few, else quantiles."""
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return np.empty(0)
    distinct = present[np.concatenate([[True], present[1:] > present[:-1]])]
    if len(distinct) <= n_bins:
        with np.errstate(over="ignore"):
            middle = distinct[:-1] + 0.5 * (distinct[1:] - distinct[:-1])
        return np.asarray(np.where(np.isfinite(middle), middle, 0.5 * distinct[:-1] + 0.5 * distinct[1:]))
    places = np.linspace(0, len(present) - 1, n_bins + 1)[1:-1].round().astype(np.int64)
    return np.unique(present[places])


def choose_pairs(rows: Matrix, features: Features, max_pairs: int, rng: np.random.Generator) -> Indices:
    """Return (2, n_pairs): all pairs of features of different columns, or those that depend most on each other.

    Beyond ``max_pairs``, the pairs with the largest mutual information are chosen, because only a combination of
    dependent features can be unusual. It is estimated with a few coarse bins on a sample of the rows.
    """
    chosen = np.arange(len(features))
    if len(features) > MAX_COMPARED:
        chosen = np.sort(rng.permutation(len(features))[:MAX_COMPARED])
    first, second = np.triu_indices(len(chosen), 1)
    different = features.column[chosen[first]] != features.column[chosen[second]]
    first, second = first[different], second[different]
    if len(first) > max_pairs:
        sample = rows[np.sort(rng.permutation(len(rows))[:SAMPLE_ROWS])]
        dependence = _mutual_information(sample[:, chosen])[first, second]
        best = np.sort(np.argsort(-dependence, kind="stable")[:max_pairs])
        first, second = first[best], second[best]
    return np.stack([chosen[first], chosen[second]])


def _mutual_information(rows: Matrix) -> Matrix:
    """Return (n_features, n_features): mutual information of coarse bins, with one bin for missing cells."""
    n, d = rows.shape
    coarse = np.full((d, COARSE_BINS - 1), NO_EDGE)
    for j in range(d):
        edges = bin_edges(rows[:, j], COARSE_BINS)
        coarse[j, : len(edges)] = edges
    bins = np.where(np.isnan(rows), COARSE_BINS, count_below(coarse, rows)[1])
    member = (bins[:, None, :] == np.arange(COARSE_BINS + 1)[:, None]).astype(np.float32)
    flat = member.reshape(n, -1)
    joint = (flat.T @ flat / n).reshape(COARSE_BINS + 1, d, COARSE_BINS + 1, d)
    alone = member.mean(axis=0)
    independent = alone[:, :, None, None] * alone[None, None, :, :]
    ratio = np.where(joint > 0.0, joint / np.where(independent > 0.0, independent, 1.0), 1.0)
    return np.asarray((joint * np.log(ratio)).sum(axis=(0, 2)), dtype=np.float64)
