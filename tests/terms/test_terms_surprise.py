"""Missing values and unseen categories: the surprise is minus the logarithm of the chance."""

from __future__ import annotations

import numpy as np
import pytest
from tables_for_terms import MIXED, fit_term, mixed_rows

from ptad.tables.features import Features
from ptad.terms.base import Reason
from ptad.terms.missing_values import MissingValuesSettings
from ptad.terms.unseen_category import UnseenCategorySettings


def surprise(share: float, n_rows: int) -> float:
    """An event of this share among n rows, with half a row added."""
    return -float(np.log((share + 0.5 / n_rows) / (1.0 + 0.5 / n_rows)))


def test_missing_cells_add_up_their_surprise() -> None:
    rows = np.ones((100, 3))
    rows[:50, 1] = np.nan
    rows[:, 2] = np.nan
    term = fit_term(MissingValuesSettings(), rows, Features.numeric(3))
    new = np.array([[1.0, 1.0, 1.0], [np.nan, 1.0, 1.0], [1.0, np.nan, 1.0], [1.0, 1.0, np.nan], [np.nan, np.nan, 1.0]])
    never, half, always = surprise(0.0, 100), surprise(0.5, 100), surprise(1.0, 100)
    assert np.allclose(term.value(new), [0.0, never, half, always, never + half], atol=1e-12)
    assert always == pytest.approx(0.0) and never > 5.0 > half > 0.0
    said = term.explain(new)
    assert np.allclose(said.shares[4], [never / (never + half), half / (never + half), 0.0])
    assert (said.reason == Reason.MISSING).all() and (said.partner == -1).all()


def test_a_column_with_several_features_is_missing_once() -> None:
    rows = mixed_rows(200)
    term = fit_term(MissingValuesSettings(), rows, MIXED)
    new = np.zeros((1, 7))
    new[0, 1:4] = np.nan
    assert term.value(new)[0] == pytest.approx(surprise(float(np.isnan(rows[:, 1]).mean()), 200))


def test_an_unseen_category_is_surprising_where_every_category_is_known_by_many_rows() -> None:
    """Good and Turing: the chance of a new category is the share of rows whose category occurs once."""
    names, colours = np.arange(100.0), np.arange(100.0) % 4
    half = np.where(np.arange(100) < 50, np.arange(100), 50 + np.arange(100) % 2)
    rows = np.column_stack([names, colours, half])
    features = Features(np.arange(3), np.array([100, 4, 52]))
    term = fit_term(UnseenCategorySettings(), rows, features)
    new = np.array([[100.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 52.0], [0.0, 0.0, 0.0], [np.nan, np.nan, np.nan]])
    expected = [surprise(1.0, 100), surprise(0.0, 100), surprise(0.5, 100), 0.0, 0.0]
    assert np.allclose(term.value(new), expected, atol=1e-12)
    assert term.explain(new).shares[1].tolist() == [0.0, 1.0, 0.0]


def test_a_category_of_held_out_rows_only_is_unseen() -> None:
    """The schema knows all categories of the table; a fold knows those of its own rows."""
    rows = np.zeros((50, 1))
    rows[49] = 1.0
    features = Features(np.array([0]), np.array([2]))
    fold = fit_term(UnseenCategorySettings(), rows[:49], features, n_rows=50)
    assert fold.value(rows[[0, 49]]).tolist() == [0.0, pytest.approx(surprise(0.0, 50))]


def test_a_table_without_categories_has_none_unseen() -> None:
    term = fit_term(UnseenCategorySettings(), np.ones((9, 2)), Features.numeric(2))
    assert term.value(np.array([[5.0, np.nan]])).tolist() == [0.0]
