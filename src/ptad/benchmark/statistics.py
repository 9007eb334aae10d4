"""Summaries over tables: ranks, win rates, Elo, intervals, Wilcoxon signed-rank tests with Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ptad.benchmark.peers.protocol import FloatArray
from ptad.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def mean_ranks(values: FloatArray) -> FloatArray:
    """Mean rank of every method, 1 is best; ties share their mean rank. (n_datasets, n_methods) -> (n_methods,)."""
    from scipy.stats import rankdata

    ranks: FloatArray = rankdata(-values, axis=1).mean(axis=0)
    return ranks


def bootstrap_interval(values: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Interval of the mean over tables (the first axis), by drawing tables with replacement; the same draws always."""
    low, high = np.quantile(_draws(len(values)) @ values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


@cache
def _draws(n_tables: int, n_draws: int = 2_000) -> FloatArray:
    """How often each table is drawn, as shares: (n_draws, n_tables)."""
    drawn = np.random.default_rng(0).integers(n_tables, size=(n_draws, n_tables))
    return np.stack([np.bincount(places, minlength=n_tables) for places in drawn]) / n_tables


def win_rates(values: FloatArray) -> FloatArray:
    """Share of tables and other methods that a method beats, ties half. (n_datasets, n_methods) -> (n_methods,)."""
    n_methods = values.shape[1]
    rates: FloatArray = (n_methods - mean_ranks(values)) / (n_methods - 1)
    return rates


def elo_ratings(values: FloatArray, anchor: int = 0) -> FloatArray:
    """Elo ratings of all methods, the anchor at 1000: 400 points are odds of ten to one.

    A Bradley-Terry model of all pairs of methods on all tables, fitted as a logistic regression; ties count half.

    Parameters
    ----------
    values : ndarray of shape (n_datasets, n_methods)
        Higher is better.
    anchor : int
        The method that has 1000 points.
    """
    from sklearn.linear_model import LogisticRegression

    first, second = np.triu_indices(values.shape[1], 1)
    pairs = np.eye(values.shape[1])[first] - np.eye(values.shape[1])[second]
    gain = values[:, first] - values[:, second]
    won = ((gain > 0) + 0.5 * (gain == 0)).sum(axis=0)
    # The weak penalty keeps a method that always wins finite.
    model = LogisticRegression(C=100.0, fit_intercept=False, max_iter=1_000)
    outcome = np.repeat([1, 0], len(pairs))
    model.fit(np.concatenate([pairs, pairs]), outcome, np.concatenate([won, len(values) - won]))
    points = 400.0 / np.log(10.0) * model.coef_[0]
    return np.asarray(1000.0 + points - points[anchor])


def compare(methods: Sequence[str], values: FloatArray) -> tuple[pd.Series, pd.DataFrame]:
    """Mean ranks of methods, the best first, and p-values of all pairs, from values of shape (n_datasets, n_methods).

    The p-values are those of Wilcoxon signed-rank tests after Holm's correction over all pairs; 1 on the diagonal.
    """
    try:
        import pandas as pd
        import scikit_posthocs
    except ImportError as error:
        raise MissingExtraError("scikit-posthocs", "bench", "The comparison of methods") from error
    ranks = pd.Series(mean_ranks(values), index=methods).sort_values(kind="stable")
    ordered = pd.DataFrame(values, columns=methods)[ranks.index]
    # zsplit: tables on which two methods are exactly equal count half for each, instead of failing when all are.
    found = scikit_posthocs.posthoc_wilcoxon(list(ordered.to_numpy().T), p_adjust="holm", zero_method="zsplit")
    p_values = np.array(found, dtype=np.float64)
    np.fill_diagonal(p_values, 1.0)
    return ranks, pd.DataFrame(p_values, ranks.index, ranks.index)
