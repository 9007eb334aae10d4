"""Terms that look at single neighbours: the nearest row, and columns whose value none of them has."""

from __future__ import annotations

import numpy as np
from tables_for_terms import MIXED, fit_term, mixed_rows

from ptad.reference import ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.nearest_row import NearestRowSettings
from ptad.terms.unmatched_columns import UnmatchedColumnsSettings


def test_the_nearest_row_is_measured_by_values_alone() -> None:
    """With all rows as neighbours it is the smallest squared distance without ranks."""
    train, rows = mixed_rows(60), mixed_rows(40, 1)
    term = fit_term(NearestRowSettings(), train, MIXED, reference=ReferenceSettings(neighbours=60))
    coordinates = term.reference.coordinates
    known, new = (coordinates(x)[:, : coordinates.n_by_value] for x in (train, rows))
    squared = ((known[None] - new[:, None]) ** 2).sum(axis=2).min(axis=1)
    assert np.allclose(term.value(rows), np.log(squared + term.term.settings.floor))


def test_a_duplicate_of_a_reference_row_has_nothing_but_the_floor() -> None:
    train = mixed_rows(60)
    term = fit_term(NearestRowSettings(floor=0.01), train, MIXED)
    assert np.allclose(term.value(train), np.log(0.01))
    assert not term.explain(train).shares.any()  # no column differs: the term has nothing to say


def test_the_nearest_row_names_the_column_that_differs() -> None:
    train = np.random.default_rng(0).normal(size=(100, 4))
    rows = train[:8].copy()
    rows[np.arange(8), np.arange(8) % 4] += 0.02
    shares = fit_term(NearestRowSettings(), train, Features.numeric(4)).explain(rows).shares
    assert (shares.argmax(axis=1) == np.arange(8) % 4).all() and (shares.max(axis=1) > 0.99).all()


def test_unmatched_columns_counts_the_columns_whose_value_no_neighbour_has() -> None:
    rng = np.random.default_rng(0)
    train = rng.integers(5, size=(60, 6)).astype(np.float64)
    rows = rng.integers(7, size=(40, 6)).astype(np.float64)
    term = fit_term(UnmatchedColumnsSettings(), train, Features.numeric(6), reference=ReferenceSettings(neighbours=60))
    unmatched = (train[None] != rows[:, None]).all(axis=1)
    assert np.allclose(term.value(rows), np.log(unmatched.sum(axis=1) + 0.5))
    expected = unmatched / np.maximum(unmatched.sum(axis=1, keepdims=True), 1)
    assert np.allclose(term.explain(rows).shares, expected)


def test_a_category_that_no_neighbour_has_is_one_unmatched_column() -> None:
    features = Features(np.arange(3), np.array([3, 3, 0]))
    train = np.array([[i % 2, i // 2 % 2, i % 3] for i in range(12)] + [[2.0, 2.0, 1.0]])
    term = fit_term(UnmatchedColumnsSettings(), train, features, reference=ReferenceSettings(neighbours=4))
    assert np.allclose(term.value(train[:12]), np.log(0.5))
    assert np.allclose(term.value(np.array([[2.0, 0.0, 0.0]])), np.log(1.5))  # only a far row has it


def test_where_every_value_is_unique_all_columns_are_unmatched() -> None:
    train = np.random.default_rng(0).normal(size=(50, 4))
    term = fit_term(UnmatchedColumnsSettings(), train, Features.numeric(4))
    assert np.allclose(term.value(np.random.default_rng(1).normal(size=(20, 4))), np.log(4.5))
