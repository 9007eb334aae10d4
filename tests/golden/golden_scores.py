"""Scores of fixed rows by models of fixed rows; no random generator takes part, so only a change of formulas shows.

The scores of the paper's network have golden values of their own in ``tests/paper``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.config import make_config
from ptad.detector import Detector
from ptad.tables.features import Features

Array = NDArray[np.float64]
CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "few_reference_rows": {"reference.rows": 25},
    "split": {"calibration.method": "split"},
    "without_calibration": {"calibration.method": "none"},
}
FEATURES = Features(np.array([0, 1, 1, 2, 3, 4]), np.array([0, 0, 0, 3, 0, 2]))


def wave(n: int, phase: float) -> Array:
    """Return numbers in [-1, 1] without any visible order."""
    return np.sin(1.7 * np.arange(1, n + 1) ** 1.1 + phase)


def rows_of(n: int, phase: float) -> Array:
    """Return encoded rows: numbers, a column of two features, two categories, missing cells."""
    first = wave(n, phase)
    rows = np.column_stack(
        [
            first,
            wave(n, phase + 1.0),
            np.exp(wave(n, phase + 2.0)),
            np.floor(1.5 + 1.4999 * wave(n, phase + 3.0)),
            first + 0.1 * wave(n, phase + 4.0),
            np.floor(1.0 + 0.9999 * wave(n, phase + 5.0)),
        ]
    )
    rows[::7, 0] = np.nan
    rows[3::11, 3] = np.nan
    return rows


def golden_scores(case: str) -> dict[str, list[float]]:
    """Return the value of every term, the scores, and the contributions of one row."""
    detector = Detector.fit(rows_of(60, 0.3), FEATURES, make_config("default", CASES[case]), seed=0)
    new = rows_of(12, 0.9)
    new[0, 0], new[1, 3], new[2, 5], new[3] = 5.0, 3.0, 2.0, np.nan
    values = detector.pipeline.values(new)
    found = {term.title(): values[:, i].tolist() for i, term in enumerate(detector.config.terms)}
    found["score"] = detector.scores(new).tolist()
    for term, said in zip(detector.config.terms, detector.pipeline.explain(new[:3]), strict=True):
        found[f"shares.{term.title()}"] = said.shares.ravel().tolist()
    if detector.calibration is not None:
        found["held_out"] = detector.calibration.scores[::5].tolist()
    return found
