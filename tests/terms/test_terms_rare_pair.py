"""Rare pair counts what it says: every combination of bins, of the rows it was fitted on and of no others."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tables_for_terms import MIXED, Fitted, fit_term, mixed_rows

from ptad.tables.features import Features
from ptad.terms.rare_pair import RarePairSettings

Matrix = NDArray[np.float64]


def fitted(rows: Matrix, features: Features, *, seed: int = 0, n_rows: int | None = None, **changes: Any) -> Fitted:
    return fit_term(RarePairSettings(**changes), rows, features, seed=seed, n_rows=n_rows)


def bins_of(fit: Fitted, rows: Matrix) -> Matrix:
    """Return a label for the bin of every cell, one by one: the number of borders up to it, its code, or -1."""
    edges, features = fit.term.state()["edges"], fit.term.features
    labels = np.empty(rows.shape)
    for (i, j), value in np.ndenumerate(rows):
        label = value if features.n_categories[j] else (edges[j] <= value).sum()
        labels[i, j] = -1.0 if np.isnan(value) else label
    return labels


def naive(fit: Fitted, train: Matrix, rows: Matrix) -> Matrix:
    """Count for every row and pair the training rows that share both bins, one by one."""
    state = fit.term.state()
    counted, whole = state["n_rows"].tolist()
    known, bins = bins_of(fit, train), bins_of(fit, rows)
    surprise = []
    for a, b in state["pairs"].T:
        same = (known[None, :, a] == bins[:, None, a]) & (known[None, :, b] == bins[:, None, b])
        surprise.append(-np.log(same.sum(axis=1) / counted + fit.term.settings.smoothing / whole))
    return np.max(surprise, axis=0)


def test_values_equal_a_naive_count() -> None:
    train, rows = mixed_rows(300), mixed_rows(60, 1, unseen=True)
    term = fitted(train, MIXED)
    assert np.allclose(term.value(rows), naive(term, train, rows), rtol=1e-12)


def test_every_training_row_is_counted_once_in_every_pair() -> None:
    train = mixed_rows(300)
    term = fitted(train, MIXED)
    assert term.term.state()["counts"].sum() == 300 * term.term.state()["pairs"].shape[1]


def test_counts_leave_out_exactly_the_rows_that_are_left_out() -> None:
    train = mixed_rows(300)
    kept = np.arange(300) % 7 != 0
    term = fitted(train[kept], MIXED, n_rows=300)
    rows = train[~kept]  # left-out rows themselves: none of them may have counted
    assert np.allclose(term.value(rows), naive(term, train[kept], rows), rtol=1e-12)
    assert term.term.state()["counts"].sum() == kept.sum() * term.term.state()["pairs"].shape[1]


def test_all_pairs_of_different_columns_are_used_while_they_are_few() -> None:
    pairs = {tuple(pair) for pair in fitted(mixed_rows(100), MIXED).term.state()["pairs"].T.tolist()}
    apart = {(a, b) for a, b in combinations(range(7), 2) if MIXED.column[a] != MIXED.column[b]}
    assert pairs == apart


def test_wide_tables_use_some_pairs_each_once() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 40))
    first, again = (fitted(rows, Features.numeric(40), pairs=100).term.state()["pairs"] for _ in range(2))
    assert first.shape == (2, 100) and len({tuple(p) for p in first.T.tolist()}) == 100
    assert np.array_equal(first, again) and (first[0] < first[1]).all()


def test_wide_tables_use_the_most_dependent_pairs() -> None:
    """Twenty columns that repeat twenty others, with noise: these twenty pairs are never left out."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 40))
    rows[:, 20:] = rows[:, :20] + 0.1 * rows[:, 20:]
    pairs = {tuple(p) for p in fitted(rows, Features.numeric(40), pairs=40).term.state()["pairs"].T.tolist()}
    assert {(i, i + 20) for i in range(20)} <= pairs


def test_bins_of_few_values_are_the_values() -> None:
    rows = np.column_stack([np.tile([0.0, 1.0, 5.0, np.nan], 20), np.arange(80.0)])
    bins = bins_of(fitted(rows, Features.numeric(2)), rows)
    assert bins[:4, 0].tolist() == [0, 1, 2, -1]


def test_bins_of_many_values_hold_about_equally_many_rows() -> None:
    rows = np.exp(np.random.default_rng(0).normal(size=(1000, 2)))
    count = np.bincount(bins_of(fitted(rows, Features.numeric(2)), rows)[:, 0].astype(int))
    assert len(count) == 10 and np.abs(count - 100).max() <= 2


@pytest.mark.parametrize("code", [4.0, np.nan], ids=["unseen", "missing"])
def test_unseen_categories_and_missing_cells_have_bins_of_their_own(code: float) -> None:
    """With no such cell in training, every pair with it is one that never occurred."""
    rows = mixed_rows(100)
    rows[np.isnan(rows[:, 4]), 4] = 0.0
    new = rows[:5].copy()
    new[:, 4] = code
    assert np.allclose(fitted(rows, MIXED).value(new), -np.log(0.5 / 100))


def test_a_combination_that_never_occurred_is_the_most_surprising_there_is() -> None:
    """Both values are common, only together they never occur."""
    codes = np.repeat([0.0, 1.0], 100)
    rows = np.column_stack([codes, codes, np.random.default_rng(0).integers(2, size=200)])
    features = Features(np.arange(3), np.array([2, 2, 2]))
    term = fitted(rows, features)
    value = term.value(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
    assert value[1] == pytest.approx(-np.log(0.5 / 200)) and value[0] < 1.5
    said = term.explain(np.array([[0.0, 1.0, 1.0]]))
    assert said.shares[0, 2] < said.shares[0, 0] and said.shares[0, 0] == pytest.approx(said.shares[0, 1], rel=1e-3)
    assert said.partner[0, :2].tolist() == [1, 0]
    assert said.expected[0, :2].tolist() == [1.0, 0.0]


def test_one_column_has_no_pairs_and_says_nothing() -> None:
    term = fitted(np.arange(20.0)[:, None], Features.numeric(1))
    said = term.explain(np.array([[3.0], [99.0]]))
    assert said.value.tolist() == [0.0, 0.0] and not said.shares.any()


def test_the_ruler_follows_the_whole_table_and_not_the_fold() -> None:
    """Bins and smoothing of a fold are those of the fit on all rows: otherwise its surprises would not compare."""
    rows = mixed_rows(343)
    whole, fold = fitted(rows, MIXED), fitted(rows[:300], MIXED, n_rows=343)
    assert whole.term.state()["edges"].shape == fold.term.state()["edges"].shape
    never = np.array([[1e9, 0.0, 0.0, 0.0, 0.0, -1e9, 0.0]])
    assert fold.value(never) == pytest.approx(whole.value(never))
