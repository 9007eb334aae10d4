"""A check of a model without labels: does it separate normal rows from synthetic anomalies?

The terms are fitted again without some of the reference rows. These rows are the normal side, and the anomalies are
made from them, so that no row is compared with itself. Trained terms are too expensive to fit again and have no
neighbours: they stay as they are, and the normal side are the calibration rows. The types of anomalies are those of
:mod:`ptad.synthetic`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptad.arrays import Matrix
from ptad.model import Model
from ptad.report.cross_fit import refitted
from ptad.report.score_histogram import roc_auc
from ptad.synthetic import ANOMALY_TYPES, disturbed_rows

Score = Callable[[Matrix], Matrix]

N_ROWS = 500
FEWEST_ROWS = 5  # on the normal side; the AUC of fewer says nothing


def synthetic_check(model: Model) -> dict[str, float | None]:
    """Return the area under the ROC curve per type; None where rows or columns do not allow that type."""
    rng = np.random.default_rng(0)
    sides = _sides(model, rng)
    if sides is None:
        return dict.fromkeys(ANOMALY_TYPES)
    base, normal, score = sides
    aucs: dict[str, float | None] = {}
    for kind in ANOMALY_TYPES:
        anomalies = disturbed_rows(kind, base, model.schema_, rng)
        if anomalies is None:
            aucs[kind] = None
            continue
        scores, places = np.unique(np.concatenate([normal, score(anomalies)]), return_inverse=True)
        counts = [np.bincount(side, minlength=len(scores)) for side in np.split(places, [len(normal)])]
        aucs[kind] = roc_auc(*counts)
    return aucs


def _sides(model: Model, rng: np.random.Generator) -> tuple[Matrix, Matrix, Score] | None:
    """Return rows to make anomalies from, scores of normal rows, and the function that scores the anomalies."""
    detector = model.detector_
    reference = detector.reference
    order = rng.permutation(len(reference))
    if model.history_:  # trained
        calibration = detector.calibration
        return None if calibration is None else (reference[order[:N_ROWS]], calibration.scores, detector.scores)
    n_taken = min(N_ROWS, len(reference) // 4)
    if n_taken < FEWEST_ROWS:
        return None
    base, rest = reference[np.sort(order[:n_taken])], reference[np.sort(order[n_taken:])]
    others = refitted(model, rest, seed=int(rng.integers(2**31)))
    return base, others.scores(base), others.scores
