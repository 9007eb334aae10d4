"""Metrics of one cell (average precision, ROC AUC, false alarms) and of methods over tables (ranks, Elo, tests)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ptad.arrays import Mask, Matrix
from ptad.benchmark.results import ALARM_COLUMNS
from ptad.errors import DataError, needs_extra

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "auc_pr": "AUC-PR",
    "auc_roc": "AUC-ROC",
    "auc_pr_at_1": "AUC-PR at a prevalence of 1 %",
    "auc_pr_at_5": "AUC-PR at a prevalence of 5 %",
}
#: Prevalences at which AUC-PR is reported besides that of the table.
FIXED_PREVALENCES = (0.01, 0.05)
#: Target false-alarm rates of :data:`ptad.benchmark.results.ALARM_COLUMNS`.
RATES = (0.01, 0.05, 0.1)


def evaluate(y: Mask, scores: Matrix) -> dict[str, float]:
    """Return ``auc_pr``, ``auc_roc``, ``auc_pr_at_1``, ``auc_pr_at_5`` and ``prevalence`` of one cell."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    labels = np.asarray(y, dtype=bool)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != labels.shape:
        raise DataError(f"{len(labels)} rows were to be scored, but the scores have shape {values.shape}.")
    if not np.isfinite(values).all():
        # A NaN turned into 0 would look like a very normal row.
        raise DataError(f"{int((~np.isfinite(values)).sum())} of {len(values)} scores are not finite.")
    metrics = {
        "auc_pr": float(average_precision_score(labels, values)),
        "auc_roc": float(roc_auc_score(labels, values)),
        "prevalence": float(labels.mean()),
    }
    for prevalence in FIXED_PREVALENCES:
        metrics[f"auc_pr_at_{prevalence * 100:g}"] = average_precision_at(labels, values, prevalence)
    return metrics


def observed_false_alarms(y: Mask, p_values: Matrix, n_train: int) -> dict[str, float | None]:
    """Return the share of normal rows flagged at each target rate; None with fewer training rows than 1 / rate - 1."""
    normal = p_values[~np.asarray(y, dtype=bool)]
    return {
        name: float((normal <= rate).mean()) if n_train >= 1.0 / rate - 1.0 and len(normal) else None
        for name, rate in zip(ALARM_COLUMNS, RATES, strict=True)
    }


def average_precision_at(y: Mask, scores: Matrix, prevalence: float) -> float:
    """Return the average precision that the same ranking would have at another share of anomalies.

    Recall and false-alarm rate do not depend on the prevalence; precision does, as
    p * recall / (p * recall + (1 - p) * false-alarm rate). Weighting the rows is exact; resampling would add noise.
    """
    from sklearn.metrics import average_precision_score

    labels = np.asarray(y, dtype=bool)
    weights = np.where(labels, prevalence / labels.sum(), (1.0 - prevalence) / (~labels).sum())
    return float(average_precision_score(labels, scores, sample_weight=weights))


def mean_ranks(values: Matrix) -> Matrix:
    """Return the mean rank of every method, 1 is best, ties averaged; (n_datasets, n_methods) -> (n_methods,)."""
    from scipy.stats import rankdata

    ranks: Matrix = rankdata(-values, axis=1).mean(axis=0)
    return ranks


def bootstrap_interval(values: Matrix) -> tuple[Matrix, Matrix]:
    """Return the 95 % bootstrap interval of the mean over tables (the first axis), with a fixed seed."""
    low, high = np.quantile(_bootstrap_weights(len(values)) @ values, [0.025, 0.975], axis=0)
    return low, high


@cache
def _bootstrap_weights(n_tables: int) -> Matrix:
    """Return the weight of each table in each of 2,000 samples, (2000, n_tables)."""
    samples = np.random.default_rng(0).integers(n_tables, size=(2_000, n_tables))
    return np.stack([np.bincount(sample, minlength=n_tables) for sample in samples]) / n_tables


def wins(gains: Matrix) -> Matrix:
    """Return 1 for a gain, 0.5 for a tie and 0 for a loss."""
    return np.heaviside(gains, 0.5)


def win_rates(values: Matrix) -> Matrix:
    """Return the share of tables and other methods that a method beats, ties half; shapes as :func:`mean_ranks`."""
    n_methods = values.shape[1]
    rates: Matrix = (n_methods - mean_ranks(values)) / (n_methods - 1)
    return rates


def elo_ratings(values: Matrix, anchor: int = 0) -> Matrix:
    """Return Elo ratings of all methods, the anchor at 1000: 400 points are odds of ten to one.

    A Bradley-Terry model of all pairs of methods on all tables, fitted as a logistic regression; ties count half.
    (n_datasets, n_methods) -> (n_methods,).
    """
    from sklearn.linear_model import LogisticRegression

    first, second = np.triu_indices(values.shape[1], 1)
    pairs = np.eye(values.shape[1])[first] - np.eye(values.shape[1])[second]
    won = wins(values[:, first] - values[:, second]).sum(axis=0)
    # The weak penalty keeps a method that always wins finite.
    model = LogisticRegression(C=100.0, fit_intercept=False, max_iter=1_000)
    outcome = np.repeat([1, 0], len(pairs))
    model.fit(np.concatenate([pairs, pairs]), outcome, np.concatenate([won, len(values) - won]))
    points = 400.0 / np.log(10.0) * model.coef_[0]
    return np.asarray(1000.0 + points - points[anchor])


def compare_methods(methods: Sequence[str], values: Matrix) -> tuple[pd.Series, pd.DataFrame]:
    """Return mean ranks, best first, and p-values of all pairs, from values of shape (n_datasets, n_methods).

    The p-values are those of Wilcoxon signed-rank tests after Holm's correction over all pairs; 1 on the diagonal.
    """
    with needs_extra("bench", "The comparison of methods", "scikit-posthocs"):
        import pandas as pd
        import scikit_posthocs
    ranks = pd.Series(mean_ranks(values), index=methods).sort_values(kind="stable")
    ordered = pd.DataFrame(values, columns=methods)[ranks.index]
    # zsplit: tables on which two methods are equal count half for each; the default fails if all are.
    table = scikit_posthocs.posthoc_wilcoxon(list(ordered.to_numpy().T), p_adjust="holm", zero_method="zsplit")
    p_values = np.array(table, dtype=np.float64)
    np.fill_diagonal(p_values, 1.0)
    return ranks, pd.DataFrame(p_values, ranks.index, ranks.index)
