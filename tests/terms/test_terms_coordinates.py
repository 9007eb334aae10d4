"""Rows as points: values in units of the range, mid-ranks, one coordinate per category."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from tables_for_terms import MIXED, mixed_rows

from ptad.reference.coordinates import CLIP, N_KNOTS, Coordinates
from ptad.tables.features import Features


@pytest.fixture(scope="module")
def columns() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(size=300), rng.poisson(2.0, size=300), rng.integers(2, size=300)])


def test_ranks_are_mid_ranks(columns: np.ndarray) -> None:
    """Equal values share the mean of their ranks, a value between two reference rows lies between their ranks."""
    points = Coordinates.fit(columns, Features.numeric(3), 1.0, 1.0)(columns)
    expected = (np.column_stack([rankdata(column) for column in columns.T]) - 0.5) / 300
    assert np.allclose(points[:, 3:], expected, rtol=0, atol=1e-12)


def test_ranks_of_new_rows_count_the_reference_rows_below(columns: np.ndarray) -> None:
    new = np.random.default_rng(1).normal(size=(50, 3)) * 2
    ranks = Coordinates.fit(columns, Features.numeric(3), 1.0, 1.0)(new)[:, 3:]
    known = columns[None, :, :]
    expected = ((known < new[:, None, :]).sum(axis=1) + (known <= new[:, None, :]).sum(axis=1)) / 600
    inside = (new > columns.min(axis=0)) & (new < columns.max(axis=0))
    assert np.allclose(ranks[inside], expected[inside], rtol=0, atol=1e-12)


def test_ranks_of_a_long_table_are_counted_among_quantiles() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 1))
    points = Coordinates.fit(rows, Features.numeric(1), 1.0, 1.0)(rows)
    assert np.abs(points[:, 1] - (rankdata(rows[:, 0]) - 0.5) / 5000).max() <= 1.0 / N_KNOTS


def test_values_are_in_units_of_the_range_and_clipped(columns: np.ndarray) -> None:
    coordinates = Coordinates.fit(columns, Features.numeric(3), 0.5, 0.5)
    low, width = columns.min(axis=0), np.ptp(columns, axis=0)
    assert np.allclose(coordinates(columns)[:, :3], (columns - low) / width)
    far = coordinates(np.array([[1e9, -1e9, 1e300]]))[0, :3]
    assert far.tolist() == [1.0 + CLIP, -CLIP, 1.0 + CLIP]


def test_a_missing_value_stands_at_the_median(columns: np.ndarray) -> None:
    coordinates = Coordinates.fit(columns, Features.numeric(3), 0.5, 0.5)
    middle = np.sort(columns, axis=0)[149]
    assert np.array_equal(coordinates(np.full((1, 3), np.nan)), coordinates(middle[None]))


def test_every_known_category_is_a_corner_and_unseen_ones_are_none() -> None:
    features = Features(np.array([0, 1]), np.array([3, 0]))
    rows = np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 3.0]])  # category 2 is known to the schema, but to no row here
    coordinates = Coordinates.fit(rows, features, 0.5, 0.7)
    points = coordinates(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [np.nan, 1.0]]))
    assert np.allclose(points[:, 1:4], [[0.7, 0, 0], [0, 0.7, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])


def test_coordinates_know_their_columns() -> None:
    coordinates = Coordinates.fit(mixed_rows(50), MIXED, 0.5, 0.5)
    numbers = [0, 1, 1, 1, 3]
    assert coordinates.column.tolist() == [*numbers, 2, 2, 2, 2, 4, 4, *numbers]
    assert coordinates.n_by_value == 11
    assert coordinates(mixed_rows(9, 1)).shape == (9, 16)


def test_fitting_uses_the_given_rows_only() -> None:
    """Range, ranks, medians and known categories of a calibration fold are those of the other rows."""
    rows = mixed_rows(100)
    changed = rows.copy()
    changed[90:] = 50.0
    changed[90:, [4, 6]] = 0
    new = mixed_rows(20, 1)
    first = Coordinates.fit(rows[:90], MIXED, 0.5, 0.5)(new)
    assert np.array_equal(first, Coordinates.fit(changed[:90], MIXED, 0.5, 0.5)(new))
    assert not np.array_equal(first, Coordinates.fit(changed, MIXED, 0.5, 0.5)(new))
