"""PTAD as a detector of PyOD: its sign (higher = anomalous), its labels (0 normal, 1 anomalous), its contamination.

The attribute ``detector_`` is the :class:`ptad.PTAD` that does the work. Needs the extra ``pyod``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ptad.config import Config
from ptad.errors import needs_extra
from ptad.estimator import PTAD

with needs_extra("pyod", "ptad.pyod", "pyod"):
    from pyod.models.base import BaseDetector

__all__ = ["PTADDetector"]

FITTED = ("decision_scores_", "threshold_", "labels_")


class PTADDetector(BaseDetector):
    """PTAD as a detector of PyOD.

    Parameters
    ----------
    contamination : float in (0, 0.5]
        Share of the TRAINING rows to be labelled as anomalies; it places ``threshold_`` and has no part in the scores.
        Of new normal rows, about as many are labelled. For a false-alarm rate with a guarantee, use
        ``detector_.predict`` or ``detector_.p_value`` instead.
    preset, config, device, random_state, verbose
        As in :class:`ptad.PTAD`.

    Attributes
    ----------
    decision_scores_ : ndarray of shape (n_rows,)
        Anomaly scores of the training rows, higher = more anomalous, by models that were fitted without them (as
        PyOD's neighbours leave out the row itself). From 5,000 rows on, only calibration rows have such a score and
        place the threshold; the others have the score of the model that was fitted on them, which is lower.
    threshold_ : float
        A row with a higher score is an anomaly.
    labels_ : ndarray of shape (n_rows,)
        0 for normal training rows, 1 for anomalous ones.
    detector_ : PTAD
        The fitted detector, with what PyOD does not have: p-values, explanations, ``save``.
    """

    def __init__(
        self,
        contamination: float = 0.1,
        preset: str = "default",
        config: Mapping[str, Any] | Config | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(contamination=contamination)
        self.preset = preset
        self.config = config
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on the rows and label them; ``y`` is ignored, with PyOD's own warning."""
        self._set_n_classes(y)
        self.detector_ = PTAD(
            self.preset,
            config=self.config,
            device=self.device,
            random_state=self.random_state,
            verbose=self.verbose,
        ).fit(X)
        held_out = self.detector_.held_out_scores_
        known = ~np.isnan(held_out)
        scores = held_out if known.all() else np.where(known, held_out, np.asarray(self.detector_.anomaly_score(X)))
        self.decision_scores_ = scores[known] if known.any() else scores
        self._process_decision_scores()
        if len(self.decision_scores_) < len(scores):
            self.decision_scores_, self.labels_ = scores, (scores > self.threshold_).astype(np.int64)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the anomaly score of every row: higher is more anomalous."""
        check_is_fitted(self, FITTED)
        return np.asarray(self.detector_.anomaly_score(X))
