"""Figures of one cell (average precision, ROC AUC, false alarms), and of methods over tables (ranks, Elo, tests)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptad.benchmark.peers.protocol import FloatArray
from ptad.benchmark.store import ALARM_COLUMNS
from ptad.errors import DataError, MissingExtraError, SettingError

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "auc_pr": "AUC-PR",
    "auc_roc": "AUC-ROC",
    "auc_pr_at_1": "AUC-PR at a prevalence of 1 %",
    "auc_pr_at_5": "AUC-PR at a prevalence of 5 %",
}
#: Prevalences at which every cell is reported besides its own.
FIXED_PREVALENCES = (0.01, 0.05)
#: Target false-alarm rates of :data:`ptad.benchmark.store.ALARM_COLUMNS`.
RATES = (0.01, 0.05, 0.1)


def evaluate(y: npt.NDArray[np.bool_], scores: FloatArray) -> dict[str, float]:
    """All figures of one cell: ``auc_pr``, ``auc_roc``, ``auc_pr_at_1``, ``auc_pr_at_5``, ``prevalence``."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    labels = np.asarray(y, dtype=bool)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != labels.shape:
        raise DataError(f"{len(labels)} rows were to be scored, but the scores have shape {values.shape}.")
    if not np.isfinite(values).all():
        # A NaN turned into 0 would look like a very normal row.
        raise DataError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores are not finite.")
    result = {
        "auc_pr": float(average_precision_score(labels, values)),
        "auc_roc": float(roc_auc_score(labels, values)),
        "prevalence": float(labels.mean()),
    }
    for prevalence in FIXED_PREVALENCES:
        result[f"auc_pr_at_{prevalence * 100:g}"] = average_precision_at(labels, values, prevalence)
    return result


def observed_false_alarms(y: npt.NDArray[np.bool_], p_values: FloatArray, n_train: int) -> dict[str, float | None]:
    """The share of normal rows flagged at each target rate; None where fewer training rows than 1 / rate - 1."""
    normal = p_values[~np.asarray(y, dtype=bool)]
    return {
        name: float((normal <= rate).mean()) if n_train >= 1.0 / rate - 1.0 and len(normal) else None
        for name, rate in zip(ALARM_COLUMNS, RATES, strict=True)
    }


def average_precision_at(y: npt.NDArray[np.bool_], scores: FloatArray, prevalence: float) -> float:
    """Average precision that the same ranking has when anomalies are a share ``prevalence`` of all rows.

    Recall and false-alarm rate do not depend on the prevalence; precision does, as
    p * recall / (p * recall + (1 - p) * false-alarm rate). Weighting the rows is exact, where drawing rows would add
    noise.
    """
    from sklearn.metrics import average_precision_score

    if not 0.0 < prevalence < 1.0:
        raise SettingError(f"A prevalence lies in (0, 1). Got {prevalence!r} instead.")
    labels = np.asarray(y, dtype=bool)
    weights = np.where(labels, prevalence / labels.sum(), (1.0 - prevalence) / (~labels).sum())
    return float(average_precision_score(labels, scores, sample_weight=weights))


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
    (n_datasets, n_methods) -> (n_methods,).
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


def compare_methods(methods: Sequence[str], values: FloatArray) -> tuple[pd.Series, pd.DataFrame]:
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
