"""From the values of the terms to contributions of the columns; the same code for numpy and torch.

Shape
-----
by_term        (n, n_terms), what every term adds to the score
contributions  (n, n_columns), signed; a row adds up to its score
expected       (n, n_features), encoded like the rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptad.arrays import Array, columns, floats, like, namespace, rounded
from ptad.tables.features import Features
from ptad.terms.base import Reason, TermValues

SAME = 1e-6  # relative difference up to which two numbers read alike


@dataclass
class Attribution:
    """Where the scores of some rows come from."""

    contributions: Array  # (n, n_columns), before :func:`final_contributions`
    reason: Array  # (n, n_columns), a Reason
    partner: Array  # (n, n_columns), for combinations: the other column; -1 otherwise
    expected: Array | None  # (n, n_features), or None if no term expects anything
    unchanged: Array  # (n, n_columns), whether the value is the expected one


def attribute(rows: Array, term_values: list[TermValues], by_term: Array, features: Features) -> Attribution:
    """Split the score among the columns; a cell has the reason and expected value of the term that adds most to it."""
    xp: Any = namespace(rows)
    cells = xp.stack([by_term[:, i, None] * term.shares for i, term in enumerate(term_values)])
    leading = rounded(cells).argmax(axis=0)  # equal cells stay equal, whatever the last digit
    reason, partner = term_values[0].reason, term_values[0].partner
    for i, term in enumerate(term_values[1:], start=1):
        reason = xp.where(leading == i, term.reason, reason)
        partner = xp.where(leading == i, term.partner, partner)
    for term in term_values:  # a combination whose other column the leading term does not know has that of another
        partner = xp.where((partner < 0) & (reason == int(Reason.UNUSUAL_COMBINATION)), term.partner, partner)
    expected = _expected(rows, term_values, leading, features)
    unchanged = leading < 0
    if expected is not None:
        # A gap or an unseen category is never what was expected, whatever stands in for it.
        unchanged = _same(rows, expected, features) & (reason <= int(Reason.UNUSUAL_COMBINATION))
    return Attribution(cells.sum(axis=0), reason, partner, expected, unchanged)


def final_contributions(contributions: Array, unchanged: Array, score: Array) -> Array:
    """Return contributions that add up to the score, none of them positive for a value that is the expected one.

    What such cells add is given to the row's other positive cells; what no column accounts for is spread evenly.
    """
    xp: Any = namespace(contributions)
    positive = xp.where(contributions > 0.0, contributions, 0.0)
    removed = xp.where(unchanged, positive, 0.0)
    rest = positive - removed
    total = rest.sum(axis=1)[:, None]
    factor = removed.sum(axis=1)[:, None] / xp.where(total > 0.0, total, 1.0)
    moved = xp.where(total > 0.0, contributions - removed + rest * factor, contributions)
    gap = score - moved.sum(axis=1)
    return moved + gap[:, None] / contributions.shape[1]


def _expected(rows: Array, term_values: list[TermValues], leading: Array, features: Features) -> Array | None:
    """Return what the leading term expects; that of another term where it is missing or equals the observed value."""
    xp: Any = namespace(rows)
    chosen: Array | None = None
    for i, term in enumerate(term_values):
        if term.expected is None:
            continue
        if chosen is None:
            chosen = term.expected
            continue
        preferred = (leading == i) | _same(rows, chosen, features)
        usable = ~_same(rows, term.expected, features) & ~_any(xp.isnan(term.expected), features)
        chosen = xp.where(columns(preferred & usable, features.column), term.expected, chosen)
    return chosen


def _same(rows: Array, expected: Array, features: Features) -> Array:
    """Return (n, n_columns): whether an expected value reads like the observed one."""
    xp: Any = namespace(rows)
    resolution = like(features.resolution, rows)
    with np.errstate(over="ignore"):  # farther apart than any number: not the same
        difference = xp.abs(rows - expected)
    tolerance = SAME * xp.maximum(xp.abs(rows), xp.abs(expected))
    return ~_any(~(difference <= xp.where(resolution > 0.0, resolution, tolerance)), features)


def _any(cells: Array, features: Features) -> Array:
    """Return (n, n_columns): whether any feature of the column is marked."""
    if features.n_columns == len(features):
        return cells
    member = features.column[:, None] == np.arange(features.n_columns)
    return floats(cells) @ like(member.astype(np.float64), cells) > 0.0
