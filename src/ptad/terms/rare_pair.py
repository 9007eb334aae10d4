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
    columns,
    count_below,
    gather,
    integers,
    largest,
    like,
    namespace,
    on_device,
    rounded,
    to_numpy,
)
from ptad.layout import MOST_ROWS, ArrayLayout, require
from ptad.reference import Batch, Reference
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, Reason, State, Term, TermSettings, TermValues, normalised
from ptad.terms.pair_choice import MOST_COMPARED, NO_EDGE, bin_edges, choose_pairs


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
        counted, whole = state["n_rows"].tolist()
        share = state["counts"] / counted + settings.smoothing / whole
        self._surprise = on_device(-np.log(share), device)

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Cut the features into bins and count the pairs."""
        features = reference.features
        n_bins = int(np.clip(round(context.n_rows ** (1 / 3)), 2, settings.bins))
        edges = np.full((len(features), n_bins - 1), NO_EDGE)
        for j in features.numbers:
            found = bin_edges(rows[:, j], n_bins)
            edges[j, : len(found)] = found
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
        return self._starts + columns(bins, self._first) * self._step + columns(bins, self._second)

    def value(self, batch: Batch) -> Array:
        """Return (n,): the largest surprise over all pairs."""
        if not len(self._first):
            return namespace(batch.rows).zeros_like(batch.rows[:, 0])
        return largest(self._surprise[self._places(batch.rows)])

    def explain(self, batch: Batch) -> TermValues:
        """Return the values, split by how much likelier each value's alternatives are, given its partner."""
        rows = batch.rows
        xp: Any = namespace(rows)
        nothing = xp.zeros_like(columns(rows, self.features.starts))
        if not len(self._first):
            none = integers(nothing) - 1
            reason = none + 1 + int(Reason.UNUSUAL_COMBINATION)
            return TermValues(value=nothing[:, 0], shares=nothing, reason=reason, partner=none)
        places = self._places(rows)
        surprise = self._surprise[places]
        value = largest(surprise)
        # The rarest pairs decide, and all of them: a wrong value makes rare pairs with many others.
        heed = xp.exp(surprise - value[:, None])
        first_given, second_given, first_mode, second_mode = self._alternatives
        # What every pair says about its first feature, then about its second; nothing fills the gaps of ``sides``.
        excess = xp.concatenate([heed * first_given[places], heed * second_given[places], nothing[:, :1]], axis=1)
        sides, beside, has = self._sides
        mine = columns(excess, sides.ravel()).reshape(-1, *sides.shape)  # (n, n_features, at most n sides)
        # Pairs that are equally rare stay so, whatever the last digit: the first of them is named.
        best = like(sides.ravel(), rows)[
            rounded(mine).argmax(axis=2) + like(sides.shape[1] * np.arange(len(sides)), rows)
        ]
        place = gather(places, best % len(self._first))
        mode = xp.where(best < len(self._first), first_mode[place], second_mode[place])
        typical = self._state["typical"]
        usual = self._typical[mode + like(typical.shape[1] * np.arange(len(sides)), rows)]
        amount = mine.sum(axis=2)
        features, gap = self._members
        held = xp.where(like(gap, rows), 0.0, columns(amount, features.ravel()).reshape(-1, *features.shape))
        heaviest = rounded(held).argmax(axis=2) + like(features.shape[1] * np.arange(len(features)), rows)
        shares = held.sum(axis=2)
        partner = gather(like(beside, rows)[best], like(features.ravel(), rows)[heaviest])
        return TermValues(
            value=value,
            shares=normalised(shares),
            reason=xp.zeros_like(partner) + int(Reason.UNUSUAL_COMBINATION),
            partner=partner,
            expected=xp.where(like(has, rows), usual, np.nan),
        )

    @cached_property
    def _sides(self) -> tuple[Indices, Indices, NDArray[np.bool_]]:
        """Return where every feature stands in ``excess``, the column beside each place, and which features do."""
        feature, other = np.concatenate([self._first, self._second]), np.concatenate([self._second, self._first])
        sides, gap = _listed(feature, len(self.features))
        beside = np.append(self.features.column[other], -1)
        return np.where(gap, len(feature), sides), beside, np.asarray(~gap.all(axis=1))

    @cached_property
    def _members(self) -> tuple[Indices, NDArray[np.bool_]]:
        """Return the features of every column."""
        return _listed(self.features.column, self.features.n_columns)

    @cached_property
    def _alternatives(self) -> list[Array]:
        """Return for every combination how much likelier the likeliest value of either side is, and which it is."""
        logs = -to_numpy(self._surprise)
        parts: list[list[Any]] = [[], [], [], []]
        start = 0
        for n_first, n_second in self._shapes.T:
            table = logs[start : start + n_first * n_second].reshape(n_first, n_second)
            start += n_first * n_second
            parts[0].append((table.max(axis=0) - table).ravel())
            parts[1].append((table.max(axis=1, keepdims=True) - table).ravel())
            parts[2].append(np.broadcast_to(table.argmax(axis=0), table.shape).ravel())
            parts[3].append(np.broadcast_to(table.argmax(axis=1)[:, None], table.shape).ravel())
        return [on_device(np.concatenate(part), self._device) for part in parts]

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        """Return the arrays; how many bins and pairs there are is for the arrays themselves to say."""
        n, most = len(features), max(settings.bins, int(features.n_categories.max(initial=0))) + 2
        return {
            "pairs": ArrayLayout("int64", (2, (0, settings.pairs)), low=0, high=n - 1),
            "edges": ArrayLayout("float64", (n, (1, settings.bins - 1))),
            "typical": ArrayLayout("float64", (n, (2, most)), gaps=True),
            "n_rows": ArrayLayout("int64", (2,), low=1, high=MOST_ROWS),
            "counts": ArrayLayout("int32", ((0, settings.pairs * most * most),), low=0),
        }

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        (first, second), edges, features = state["pairs"], state["edges"], reference.features
        widths = _widths(edges, features)
        require((edges[:, 1:] >= edges[:, :-1]).all(), "rare_pair.edges", "is not sorted")
        # in order and none twice: of few features there are few pairs, and each has a bounded number of partners
        order = first * len(features) + second
        ascending = (np.diff(order) > 0).all() and (first < second).all()
        few = len(np.unique(state["pairs"])) <= MOST_COMPARED
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


def _listed(group: Indices, n_groups: int) -> tuple[Indices, NDArray[np.bool_]]:
    """Return (n_groups, most): the places of every group's members, and where the list has ended before."""
    counts = np.bincount(group, minlength=n_groups)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    steps = np.arange(max(int(counts.max()), 1))
    gap = steps >= counts[:, None]
    return order[np.where(gap, 0, starts[:, None] + steps)], gap


def _typical(rows: Matrix, bins: Indices, n_bins: int) -> Matrix:
    """Return (n_features, n_bins): a value that stands for each bin, the middle one of the rows in it."""
    typical = np.full((rows.shape[1], n_bins), np.nan)
    for j in range(rows.shape[1]):
        order = np.lexsort((rows[:, j], bins[:, j]))
        found, start, count = np.unique(bins[order, j], return_index=True, return_counts=True)
        typical[j, found] = rows[order[start + count // 2], j]
    return typical
