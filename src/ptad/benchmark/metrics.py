"""Average precision, ROC AUC, and average precision at a prevalence of one's choice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptad.benchmark.store import ALARM_COLUMNS
from ptad.errors import DataError, SettingError

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


def evaluate(y: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64]) -> dict[str, float]:
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


def observed_false_alarms(
    y: npt.NDArray[np.bool_], p_values: npt.NDArray[np.float64], n_train: int
) -> dict[str, float | None]:
    """The share of normal rows flagged at each target rate; None where fewer training rows than 1 / rate - 1."""
    normal = p_values[~np.asarray(y, dtype=bool)]
    return {
        name: float((normal <= rate).mean()) if n_train >= 1.0 / rate - 1.0 and len(normal) else None
        for name, rate in zip(ALARM_COLUMNS, RATES, strict=True)
    }


def average_precision_at(y: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64], prevalence: float) -> float:
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
