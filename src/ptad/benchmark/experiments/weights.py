"""The weight of the orthogonality term, and the weights kappa = alpha of the two calibration distances."""

from __future__ import annotations

from ptad.benchmark.experiments.variants import FOUR_TABLES, Experiment, paper_variant

_ORTHOGONALITY = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
_SCORE = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)

WEIGHTS = Experiment(
    "weights",
    "Weights of orthogonality and of the calibration distances",
    (
        *(paper_variant(f"orthogonality {w:g}", orthogonality_weight=w) for w in _ORTHOGONALITY),
        *(paper_variant(f"kappa = alpha = {w:g}", basis_score_weight=w, prototype_score_weight=w) for w in _SCORE),
    ),
    FOUR_TABLES,
)
