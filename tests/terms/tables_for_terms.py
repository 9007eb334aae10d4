"""Encoded tables that the tests of the terms share."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptad.terms
from ptad.reference import Batch, Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import FitContext, TermSettings, TermValues

Matrix = NDArray[np.float64]


def every_term() -> dict[str, TermSettings]:
    """Return the settings of all terms there are, in a preset or not; those of the paper's network live elsewhere."""
    names = [found.name for found in pkgutil.iter_modules(ptad.terms.__path__) if found.name != "network"]
    modules = [import_module(f"ptad.terms.{name}") for name in names]
    kinds = {
        value.title(): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, TermSettings) and value is not TermSettings
    }
    return {title: kinds[title]() for title in sorted(kinds)}


TERMS = every_term()

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


@dataclass
class Fitted:
    """A fitted term together with the reference rows that it looks at."""

    term: Any
    reference: Reference

    def value(self, rows: Matrix) -> Matrix:
        return np.asarray(self.term.value(Batch(rows, self.reference)))

    def explain(self, rows: Matrix) -> TermValues:
        return self.term.explain(Batch(rows, self.reference))

    def transform(self, rows: Matrix) -> Matrix | None:
        return self.term.transform(Batch(rows, self.reference))


def fit_term(
    settings: TermSettings,
    rows: Matrix,
    features: Features,
    *,
    seed: int = 0,
    n_rows: int | None = None,
    reference: ReferenceSettings | None = None,
) -> Fitted:
    """Fit a term with all rows as reference rows."""
    kept = Reference(rows, features, reference or ReferenceSettings())
    context = FitContext(np.random.default_rng(seed), n_rows or len(rows))
    return Fitted(settings.term().fit(rows, kept, settings, context), kept)
