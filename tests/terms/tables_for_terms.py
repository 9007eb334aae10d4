"""Encoded tables that the tests of the terms share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.config import PRESETS
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Term, TermSettings

Matrix = NDArray[np.float64]
TERMS: dict[str, TermSettings] = {settings.title(): settings for settings in PRESETS["default"].terms}

# Column 1 is a text or a date with three features; columns 2 and 4 are categories with 4 and 2 known values.
MIXED = Features(np.array([0, 1, 1, 1, 2, 3, 4]), np.array([0, 0, 0, 0, 4, 0, 2]))


def mixed_rows(n: int, seed: int = 0, unseen: bool = False) -> Matrix:
    """Rows of the features above: numbers that depend on each other, two categories, missing cells."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 7))
    rows[:, 5] = rows[:, 0] + 0.2 * rows[:, 5]
    rows[:, 4] = rng.integers(4 + unseen, size=n)
    rows[:, 6] = rng.integers(2 + unseen, size=n)
    rows[rng.random(n) < 0.1, 0] = np.nan
    rows[np.ix_(rng.random(n) < 0.1, [1, 2, 3])] = np.nan
    rows[rng.random(n) < 0.1, 4] = np.nan
    if unseen:
        rows[0] = np.nan
        rows[1] = 1e300
        rows[1, [4, 6]] = [4, 2]
        rows[2] = -1e300
        rows[2, [4, 6]] = [4, 2]
    return rows


def fit_term(settings: TermSettings, rows: Matrix, features: Features, seed: int = 0, **context: Any) -> Term:
    """Fit a term with all rows as reference rows."""
    context = {"n_rows": len(rows), **context}
    return settings.term().fit(rows, rows, features, settings, FitContext(np.random.default_rng(seed), **context))
