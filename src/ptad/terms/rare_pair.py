"""Rare pair: the rarest combination of two values in the row.

Every feature is cut into bins (quantiles of the training rows; single values where there are few; a bin of its own for
missing cells and for unseen categories). For pairs of features the training rows in each combination of bins are
counted; the value of the term is the largest surprise, minus the logarithm of the smoothed share, over all pairs.

Shape
-----
bins      (n, n_features), small integers
places    (n, n_pairs), where each pair's combination stands in the flat list of all counts
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import (
    Array,
    Indices,
    Matrix,
    count_below,
    gather,
    integers,
    largest,
    like,
    namespace,
    on_device,
    rounded,
    take_columns,
    to_numpy,
)
from ptad.layout import MOST_ROWS, ArrayLayout, require
from ptad.reference import Batch, Reference
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, State, Term, TermSettings, TermValues, normalised
from ptad.terms.pair_choice import MAX_COMPARED, NO_EDGE, bin_edges, choose_pairs


@dataclass(frozen=True)
class RarePairSettings(TermSettings):
    """Settings of :class:`RarePair`."""

    name: ClassVar[str] = "rare_pair"

    pairs: int = setting(400, low=1, high=100_000)  # at most; wider tables take the most dependent ones
    bins: int = setting(24, low=2, high=1000)  # at most; the cube root of the number of rows where that is less
    smoothing: float = setting(0.5, low=1e-9, high=1e3)  # rows added to every count

    @classmethod
    def term(cls) -> type[RarePair]:
        return RarePair


class RarePair(Term):
    """Surprise at the rarest pair of values."""

    def __init__(self, state: State, reference: Reference, settings: RarePairSettings) -> None:
        super().__init__(state, reference, settings)
        features, device = reference.features, reference.device
        self._device = device
        self._edges = on_device(state["edges"], device)
        self._first, self._second = state["pairs"]
        self._widths = widths = _widths(state["edges"], features)
        self._typical = on_device(state["typical"].ravel(), device)
        self._shapes = np.stack([widths[self._first], widths[self._second]])
        starts = np.concatenate([[0], np.cumsum(self._shapes.prod(axis=0))]).astype(np.int64)
        self._starts, self._step = on_device(starts[:-1], device), on_device(self._shapes[1], device)
        n_counted, n_rows = state["n_rows"].tolist()
        share = state["counts"] / n_counted + settings.smoothing / n_rows
        self._surprise = on_device(-np.log(share), device)

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Cut the features into bins and count the pairs."""
        features = reference.features
        n_bins = int(np.clip(round(context.n_rows ** (1 / 3)), 2, settings.bins))
        edges = np.full((len(features), n_bins - 1), NO_EDGE)
        for j in features.numbers:
            feature_edges = bin_edges(rows[:, j], n_bins)
            edges[j, : len(feature_edges)] = feature_edges
        pairs = choose_pairs(rows, features, settings.pairs, context.rng)
        widths = _widths(edges, features)
        bins = bin_rows(rows, edges, widths, features)
        counts = [np.bincount(bins[:, a] * widths[b] + bins[:, b], minlength=widths[a] * widths[b]) for a, b in pairs.T]
        state: State = {
            "pairs": pairs,
            "edges": edges,
            "typical": _typical(reference.rows, bin_rows(reference.rows, edges, widths, features), int(widths.max())),
            "n_rows": np.array([len(rows), context.n_rows], dtype=np.int64),
            "counts": np.concatenate([*counts, np.empty(0, dtype=np.int64)]).astype(np.int32),
        }
        return cls(state, reference, settings)

    def _places(self, rows: Array) -> Array:
        bins = bin_rows(rows, self._edges, self._widths, self.features)
        return self._starts + take_columns(bins, self._first) * self._step + take_columns(bins, self._second)

    def value(self, batch: Batch) -> Array:
        """Return (n,): the largest surprise over all pairs."""
        if not len(self._first):
            return namespace(batch.rows).zeros_like(batch.rows[:, 0])
        return largest(self._surprise[self._places(batch.rows)])

    def explain(self, batch: Batch) -> TermValues:
        """Return the values, shared by how much more likely the likeliest value of a feature is, given its partner."""
        rows = batch.rows
        xp: Any = namespace(rows)
        zeros = xp.zeros_like(take_columns(rows, self.features.starts))
        if not len(self._first):
            none = integers(zeros) - 1
            reason = none + 1 + int(Reason.UNUSUAL_COMBINATION)
            return TermValues(value=zeros[:, 0], shares=zeros, reason=reason, partner=none)
        places = self._places(rows)
        surprise = self._surprise[places]
        value = largest(surprise)
        # All rare pairs count, the rarest most: a wrong value makes rare pairs with many others.
        weight = xp.exp(surprise - value[:, None])
        first_excess, second_excess, first_mode, second_mode = self._alternatives
        # The excess of the first feature of every pair, then of the second; a zero at the end pads ``sides``.
        excess = xp.concatenate([weight * first_excess[places], weight * second_excess[places], zeros[:, :1]], axis=1)
        sides, other_column, has_pairs = self._sides
        by_side = take_columns(excess, sides.ravel()).reshape(-1, *sides.shape)  # (n, n_features, at most n sides)
        # Rounded, so that of equally rare pairs the first one is named, independent of the last digit.
        side_starts = like(sides.shape[1] * np.arange(len(sides)), rows)
        best = like(sides.ravel(), rows)[rounded(by_side).argmax(axis=2) + side_starts]
        place = gather(places, best % len(self._first))
        mode = xp.where(best < len(self._first), first_mode[place], second_mode[place])
        bin_starts = like(self._state["typical"].shape[1] * np.arange(len(sides)), rows)
        expected = xp.where(like(has_pairs, rows), self._typical[mode + bin_starts], np.nan)
        members, padding = _members_of_groups(self.features.column, self.features.n_columns)
        by_member = take_columns(by_side.sum(axis=2), members.ravel()).reshape(-1, *members.shape)
        by_member = xp.where(like(padding, rows), 0.0, by_member)
        strongest = rounded(by_member).argmax(axis=2) + like(members.shape[1] * np.arange(len(members)), rows)
        partner = gather(like(other_column, rows)[best], like(members.ravel(), rows)[strongest])
        return TermValues(
            value=value,
            shares=normalised(by_member.sum(axis=2)),
            reason=xp.zeros_like(partner) + int(Reason.UNUSUAL_COMBINATION),
            partner=partner,
            expected=expected,
        )

    @cached_property
    def _sides(self) -> tuple[Indices, Indices, NDArray[np.bool_]]:
        """Return the places of every feature in ``excess``, the other column of each, and which features have any."""
        feature, other = np.concatenate([self._first, self._second]), np.concatenate([self._second, self._first])
        sides, padding = _members_of_groups(feature, len(self.features))
        other_column = np.append(self.features.column[other], -1)
        return np.where(padding, len(feature), sides), other_column, np.asarray(~padding.all(axis=1))

    @cached_property
    def _alternatives(self) -> list[Array]:
        """Return for every combination the log ratio of the likeliest value of either side to it, and their bins."""
        logs, starts = -to_numpy(self._surprise), to_numpy(self._starts)
        parts = [np.empty(len(logs), dtype=dtype) for dtype in (np.float64, np.float64, np.int64, np.int64)]
        for shape in np.unique(self._shapes, axis=1).T:  # all pairs with the same numbers of bins at once
            pairs = np.flatnonzero((self._shapes == shape[:, None]).all(axis=0))
            places = starts[pairs, None] + np.arange(shape.prod())
            table = logs[places].reshape(-1, *shape)
            excesses = table.max(axis=1, keepdims=True) - table, table.max(axis=2, keepdims=True) - table
            modes = table.argmax(axis=1, keepdims=True), table.argmax(axis=2, keepdims=True)
            for part, values in zip(parts, (*excesses, *modes), strict=True):
                part[places] = np.broadcast_to(values, table.shape).reshape(places.shape)
        return [on_device(part, self._device) for part in parts]

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        """Declare the arrays; the numbers of bins and pairs are bounded, and follow from the arrays."""
        n, max_bins = len(features), max(settings.bins, int(features.n_categories.max(initial=0))) + 2
        return {
            "pairs": ArrayLayout("int64", (2, (0, settings.pairs)), low=0, high=n - 1),
            "edges": ArrayLayout("float64", (n, (1, settings.bins - 1))),
            "typical": ArrayLayout("float64", (n, (2, max_bins)), allow_nan=True),
            "n_rows": ArrayLayout("int64", (2,), low=1, high=MOST_ROWS),
            "counts": ArrayLayout("int32", ((0, settings.pairs * max_bins * max_bins),), low=0),
        }

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        (first, second), edges, features = state["pairs"], state["edges"], reference.features
        widths = _widths(edges, features)
        require((edges[:, 1:] >= edges[:, :-1]).all(), "rare_pair.edges", "is not sorted")
        # in order and none twice: few features then have few pairs
        order = first * len(features) + second
        ascending = (np.diff(order) > 0).all() and (first < second).all()
        few = len(np.unique(state["pairs"])) <= MAX_COMPARED
        require(ascending and few, "rare_pair.pairs", "does not hold pairs of features")
        fits = state["typical"].shape[1] == widths.max(initial=0)
        require(fits, "rare_pair.typical", "does not belong to its bins")
        n_counts = int((widths[first] * widths[second]).sum())
        require(len(state["counts"]) == n_counts, "rare_pair.counts", "does not belong to its pairs")
        return cls(state, reference, settings)


def bin_rows(rows: Array, edges: Array, widths: Indices, features: Features) -> Array:
    """Return (n, n_features): the bin of every cell; the last bin of a feature is that of missing cells."""
    xp: Any = namespace(rows)
    _, bins = count_below(edges, rows)
    if len(features.categories):
        category = like(features.n_categories > 0, rows)
        bins = xp.where(category, integers(xp.where(category & ~xp.isnan(rows), rows, 0.0)), bins)
    return xp.where(xp.isnan(rows), like(widths - 1, rows), bins)


def _widths(edges: Matrix, features: Features) -> Indices:
    """Return (n_features,): the number of bins, with those for unseen categories and missing cells."""
    return np.where(features.n_categories > 0, features.n_categories, (edges < NO_EDGE).sum(axis=1)) + 2


def _members_of_groups(group: Indices, n_groups: int) -> tuple[Indices, NDArray[np.bool_]]:
    """Return (n_groups, size of the largest): the members of every group, and which entries are padding."""
    counts = np.bincount(group, minlength=n_groups)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    steps = np.arange(max(int(counts.max()), 1))
    padding = steps >= counts[:, None]
    return order[np.where(padding, 0, starts[:, None] + steps)], padding


def _typical(rows: Matrix, bins: Indices, n_bins: int) -> Matrix:
    """Return (n_features, n_bins): the median value of the rows in each bin."""
    typical = np.full((rows.shape[1], n_bins), np.nan)
    for j in range(rows.shape[1]):
        order = np.lexsort((rows[:, j], bins[:, j]))
        places, start, count = np.unique(bins[order, j], return_index=True, return_counts=True)
        typical[j, places] = rows[order[start + count // 2], j]
    return typical
