"""Tail probability: the logarithm of the mean inverse probability of single values."""

from __future__ import annotations

import numpy as np
from tables_for_terms import MIXED, fit_term, mixed_rows

from ptad.tables.features import Features
from ptad.terms.tail_probability import TailProbabilitySettings


def test_a_number_has_its_two_sided_tail_probability() -> None:
    train = np.random.default_rng(0).normal(size=(400, 1))
    term = fit_term(TailProbabilitySettings(), train, Features.numeric(1))
    new = np.concatenate([np.random.default_rng(1).normal(size=(30, 1)), [[99.0], [-99.0]]])
    up, down = (train[None, :, 0] <= new).sum(axis=1), (train[None, :, 0] >= new).sum(axis=1)
    p = np.minimum(2.0 * np.minimum(up, down) / 400 + 1.0 / 400, 1.0)
    low, high = train.min(), train.max()
    beyond = np.maximum(low - new[:, 0], 0.0) + np.maximum(new[:, 0] - high, 0.0)
    assert np.allclose(term.value(new), -np.log(p / (1.0 + beyond / (high - low))))


def test_an_absurd_number_stands_out_among_many_columns() -> None:
    train, new = (np.random.default_rng(seed).normal(size=(300, 200)) for seed in (0, 1))
    new[0, 7], new[1, 7], new[2, 7], new[3, 7] = 1e12, 9.0, 1e308, -1e308
    values = fit_term(TailProbabilitySettings(), train, Features.numeric(200)).value(new)
    assert np.isfinite(values).all()
    assert values[2] > values[0] > values[4:].max() and values[3] > values[0]


def test_the_largest_and_the_smallest_ranges_stay_finite() -> None:
    train = np.array([[-1.7e308, 0.0], [1.7e308, 5e-324]] * 40) + np.linspace(0, 1, 80)[:, None] * [1e300, 0.0]
    values = fit_term(TailProbabilitySettings(), train, Features.numeric(2)).value(
        np.array([[1.79e308, 1e308], [0.0, 0.0], [-1.79e308, -1e308]])
    )
    assert np.isfinite(values).all()


def test_a_category_has_the_share_of_rows_at_most_as_frequent() -> None:
    codes = np.repeat([0.0, 1.0, 2.0], [70, 20, 10])[:, None]
    term = fit_term(TailProbabilitySettings(), codes, Features(np.array([0]), np.array([3])))
    p = np.minimum(np.array([1.0, 0.3, 0.1, 0.0]) + 0.005, 1.0)
    assert np.allclose(term.value(np.arange(4.0)[:, None]), -np.log(p))


def test_a_number_of_few_values_is_treated_like_a_category() -> None:
    counts = np.repeat([0.0, 1.0, 5.0], [90, 9, 1])[:, None]
    term = fit_term(TailProbabilitySettings(), counts, Features.numeric(1))
    as_codes = fit_term(TailProbabilitySettings(), counts, Features(np.array([0]), np.array([6])))
    new = np.array([[0.0], [1.0], [5.0]])
    assert np.allclose(term.value(new), as_codes.value(new))


def test_a_gap_has_the_share_of_rows_with_a_gap() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 1))
    rows[:50] = np.nan
    term = fit_term(TailProbabilitySettings(), rows, Features.numeric(1))
    assert np.allclose(term.value(np.array([[np.nan]])), -np.log(0.25 + 0.5 / 200))


def test_features_are_averaged_by_inverse_probability() -> None:
    train, rows = mixed_rows(300), mixed_rows(40, 1)
    term = fit_term(TailProbabilitySettings(), train, MIXED)
    surprise = term.term._surprise(rows)
    assert np.allclose(term.value(rows), np.log(np.exp(surprise).mean(axis=1)))
    shares = np.exp(surprise) / np.exp(surprise).sum(axis=1, keepdims=True)
    by_column = np.column_stack([shares[:, MIXED.column == j].sum(axis=1) for j in range(5)])
    assert np.allclose(term.explain(rows).shares, by_column)
