"""Bins, and the pairs of features that are worth counting."""

from __future__ import annotations

import numpy as np

from ptad.arrays import Indices, Matrix, count_below
from ptad.tables.features import Features

COARSE_BINS, SAMPLE_ROWS, MOST_COMPARED = 4, 2_000, 100  # for the choice among many pairs
NO_EDGE = np.finfo(np.float64).max  # fills the list of a feature that has fewer bins than others


def bin_edges(values: Matrix, n_bins: int) -> Matrix:
    """Return the borders between the bins of a number: between all values where they are few, else quantiles."""
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return np.empty(0)
    different = present[np.concatenate([[True], present[1:] > present[:-1]])]
    if len(different) <= n_bins:
        with np.errstate(over="ignore"):
            middle = different[:-1] + 0.5 * (different[1:] - different[:-1])
        return np.asarray(np.where(np.isfinite(middle), middle, 0.5 * different[:-1] + 0.5 * different[1:]))
    places = np.linspace(0, len(present) - 1, n_bins + 1)[1:-1].round().astype(np.int64)
    return np.unique(present[places])


def choose_pairs(rows: Matrix, features: Features, most: int, rng: np.random.Generator) -> Indices:
    """Return (2, n_pairs): all pairs of features of different columns, or those that depend most on each other.

    A combination is telling where the two values usually go together; of many pairs, the ones with the largest mutual
    information are taken, estimated in a few coarse bins on a sample of the rows.
    """
    chosen = np.arange(len(features))
    if len(features) > MOST_COMPARED:
        chosen = np.sort(rng.permutation(len(features))[:MOST_COMPARED])
    first, second = np.triu_indices(len(chosen), 1)
    apart = features.column[chosen[first]] != features.column[chosen[second]]
    first, second = first[apart], second[apart]
    if len(first) > most:
        sample = rows[np.sort(rng.permutation(len(rows))[:SAMPLE_ROWS])]
        dependence = _mutual_information(sample[:, chosen])[first, second]
        best = np.sort(np.argsort(-dependence, kind="stable")[:most])
        first, second = first[best], second[best]
    return np.stack([chosen[first], chosen[second]])


def _mutual_information(rows: Matrix) -> Matrix:
    """Return (n_features, n_features): mutual information of coarse bins, gaps having one of their own."""
    n, d = rows.shape
    coarse = np.full((d, COARSE_BINS - 1), NO_EDGE)
    for j in range(d):
        found = bin_edges(rows[:, j], COARSE_BINS)
        coarse[j, : len(found)] = found
    bins = np.where(np.isnan(rows), COARSE_BINS, count_below(coarse, rows)[1])
    member = (bins[:, None, :] == np.arange(COARSE_BINS + 1)[:, None]).astype(np.float32)
    flat = member.reshape(n, -1)
    joint = (flat.T @ flat / n).reshape(COARSE_BINS + 1, d, COARSE_BINS + 1, d)
    alone = member.mean(axis=0)
    chance = alone[:, :, None, None] * alone[None, None, :, :]
    ratio = np.where(joint > 0.0, joint / np.where(chance > 0.0, chance, 1.0), 1.0)
    return np.asarray((joint * np.log(ratio)).sum(axis=(0, 2)), dtype=np.float64)
