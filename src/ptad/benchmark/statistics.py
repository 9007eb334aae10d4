"""Ranks and tests over tables: mean ranks, Friedman, Wilcoxon signed-rank with Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptad.benchmark.summary import Summary
from ptad.errors import DataError, MissingExtraError

FloatArray = npt.NDArray[np.float64]


def mean_ranks(values: FloatArray) -> FloatArray:
    """Mean rank of every method, 1 is best; ties share their mean rank. (n_datasets, n_methods) -> (n_methods,)."""
    from scipy.stats import rankdata

    ranks: FloatArray = rankdata(-values, axis=1).mean(axis=0)
    return ranks


def bootstrap_interval(values: FloatArray, n_draws: int = 2_000, level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean over tables, by drawing tables with replacement; the same draws every time."""
    draws = np.random.default_rng(0).integers(len(values), size=(n_draws, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Comparison:
    """Tests on the tables that every method was measured on.

    Attributes
    ----------
    methods, datasets : list of str
        What was compared, best mean rank first, and where.
    ranks : ndarray of shape (n_methods,)
        Mean ranks.
    friedman : float
        p-value that all methods are alike; NaN with fewer than three methods.
    p_values : ndarray of shape (n_methods, n_methods)
        Wilcoxon signed-rank p-values after Holm's correction over all pairs; 1 on the diagonal.
    """

    methods: list[str]
    datasets: list[str]
    ranks: FloatArray
    friedman: float
    p_values: FloatArray


def compare(summary: Summary) -> Comparison:
    """Rank and test all methods of a summary."""
    methods, datasets = summary.complete()
    values = np.array([[summary.value(m, d) for m in methods] for d in datasets])
    return compare_values(methods, datasets, values)


def compare_values(methods: Sequence[str], datasets: Sequence[str], values: FloatArray) -> Comparison:
    """Rank and test methods by their values of shape (n_datasets, n_methods)."""
    try:
        import scikit_posthocs
    except ImportError as error:
        raise MissingExtraError("scikit-posthocs", "bench", "The comparison of methods") from error
    from scipy.stats import friedmanchisquare

    if len(methods) < 2 or len(datasets) < 2:
        raise DataError(
            "A comparison needs at least two methods that share at least two measured data sets; "
            f"here {len(methods)} methods share {len(datasets)}."
        )
    ranks = mean_ranks(values)
    order = np.argsort(ranks, kind="stable")
    values, ranks = values[:, order], ranks[order]
    friedman = float("nan")
    if len(methods) > 2:
        friedman = float(friedmanchisquare(*values.T).pvalue)
    # zsplit: tables on which two methods are exactly equal count half for each, instead of failing when all are.
    p_values = np.array(
        scikit_posthocs.posthoc_wilcoxon(list(values.T), p_adjust="holm", zero_method="zsplit"), dtype=np.float64
    )
    np.fill_diagonal(p_values, 1.0)
    return Comparison([methods[i] for i in order], list(datasets), ranks, friedman, p_values)
