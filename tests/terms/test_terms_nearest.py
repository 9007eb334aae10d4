"""Terms that look at single neighbours: the nearest row, the columns that changed, the tail among neighbours."""

from __future__ import annotations

import numpy as np
from tables_for_terms import MIXED, fit_term, mixed_rows

from ptad.reference import ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.changed_columns import ChangedColumnsSettings
from ptad.terms.local_tail import LocalTailSettings
from ptad.terms.nearest_row import NearestRowSettings


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


def test_changed_columns_counts_the_columns_in_which_the_most_similar_neighbour_differs() -> None:
    rng = np.random.default_rng(0)
    train = rng.integers(3, size=(200, 6)).astype(np.float64)
    rows = rng.integers(3, size=(40, 6)).astype(np.float64)
    term = fit_term(ChangedColumnsSettings(), train, Features.numeric(6), reference=ReferenceSettings(neighbours=200))
    fewest = (train[None] != rows[:, None]).sum(axis=2).min(axis=1)
    assert np.allclose(term.value(rows), np.log(fewest + 0.5))


def test_a_changed_category_is_one_changed_column() -> None:
    features = Features(np.arange(3), np.array([3, 3, 0]))
    train = np.array([[i % 3, i // 3 % 3, i] for i in range(9)], dtype=np.float64)
    term = fit_term(ChangedColumnsSettings(), train, features)
    assert np.allclose(term.value(train), np.log(0.5))
    assert np.allclose(term.value(np.array([[1.0, 0.0, 0.0]])), np.log(1.5))


def test_the_local_tail_counts_neighbours_beyond_the_value() -> None:
    train = np.arange(16.0)[:, None]
    term = fit_term(LocalTailSettings(neighbours=16), train, Features.numeric(1))
    # 16 neighbours: none beyond 99, one at or beyond 14.5, eight on either side of 7.5
    expected = -np.log(np.minimum(np.array([1.0, 3.0, 17.0]) / 17.0, 1.0))
    assert np.allclose(term.value(np.array([[99.0], [14.5], [7.5]])), expected)
