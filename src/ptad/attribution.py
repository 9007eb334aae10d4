"""Attribution of the score to columns, with the same code for numpy and torch.

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

from ptad.arrays import Array, floats, like, namespace, rounded, take_columns
from ptad.tables.features import Features
from ptad.terms.base import Reason, TermValues

SAME = 1e-6  # relative difference up to which two numbers count as equal


@dataclass
class Attribution:
    """Contributions, reasons and expected values of some rows."""

    contributions: Array  # (n, n_columns), before :func:`final_contributions`
    reason: Array  # (n, n_columns), a Reason
    partner: Array  # (n, n_columns), for combinations: the other column; -1 otherwise
    expected: Array | None  # (n, n_features), or None if no term has expected values
    as_expected: Array  # (n, n_columns), whether the value is the expected one


def attribute(
    rows: Array, term_values: list[TermValues], by_term: Array, features: Features, resolution: Array
) -> Attribution:
    """Split the score among the columns; a cell has the reason and expected value of the term that adds most to it.

    ``resolution`` (n, n_features) is the difference up to which a number counts as equal; 0 if there is none.
    """
    xp: Any = namespace(rows)
    cells = xp.stack([by_term[:, i, None] * term.shares for i, term in enumerate(term_values)])
    leading = rounded(cells).argmax(axis=0)  # equal cells stay equal, independent of the last digit
    reason, partner = term_values[0].reason, term_values[0].partner
    for i, term in enumerate(term_values[1:], start=1):
        reason = xp.where(leading == i, term.reason, reason)
        partner = xp.where(leading == i, term.partner, partner)
    for term in term_values:  # where the leading term has no partner for a combination, another term gives it
        partner = xp.where((partner < 0) & (reason == int(Reason.UNUSUAL_COMBINATION)), term.partner, partner)
    expected = _expected(rows, term_values, leading, features, resolution)
    as_expected = leading < 0
    if expected is not None:
        # A missing cell or an unseen category is never as expected, even if its encoded value is.
        as_expected = _same(rows, expected, features, resolution) & (reason <= int(Reason.UNUSUAL_COMBINATION))
    return Attribution(cells.sum(axis=0), reason, partner, expected, as_expected)


def final_contributions(contributions: Array, as_expected: Array, score: Array) -> Array:
    """Return contributions that add up to the score, at most 0 where the value is as expected.

    Positive contributions of such cells move to the row's other positive cells; a remainder is spread evenly over all
    other cells. Only a row without other positive cells keeps its contributions, and all of them take the remainder.
    """
    xp: Any = namespace(contributions)
    positive = xp.where(contributions > 0.0, contributions, 0.0)
    removed = xp.where(as_expected, positive, 0.0)
    rest = positive - removed
    total = rest.sum(axis=1)[:, None]
    factor = removed.sum(axis=1)[:, None] / xp.where(total > 0.0, total, 1.0)
    moved = xp.where(total > 0.0, contributions - removed + rest * factor, contributions)
    remainder = score - moved.sum(axis=1)
    takes_part = xp.where(as_expected & (total > 0.0), 0.0, xp.ones_like(contributions))
    return moved + remainder[:, None] * takes_part / takes_part.sum(axis=1)[:, None]


def _expected(
    rows: Array, term_values: list[TermValues], leading: Array, features: Features, resolution: Array
) -> Array | None:
    """Return the leading term's expected values; another term's where they are missing or equal the observed ones."""
    xp: Any = namespace(rows)
    chosen: Array | None = None
    for i, term in enumerate(term_values):
        if term.expected is None:
            continue
        if chosen is None:
            chosen = term.expected
            continue
        preferred = (leading == i) | _same(rows, chosen, features, resolution)
        usable = ~_same(rows, term.expected, features, resolution) & ~_any(xp.isnan(term.expected), features)
        chosen = xp.where(take_columns(preferred & usable, features.column), term.expected, chosen)
    return chosen


def _same(rows: Array, expected: Array, features: Features, resolution: Array) -> Array:
    """Return (n, n_columns): whether an expected value equals the observed one, up to the resolution."""
    xp: Any = namespace(rows)
    with np.errstate(over="ignore"):  # an infinite difference: not the same
        difference = xp.abs(rows - expected)
    tolerance = SAME * xp.maximum(xp.abs(rows), xp.abs(expected))
    return ~_any(~(difference <= xp.where(resolution > 0.0, resolution, tolerance)), features)


def _any(cells: Array, features: Features) -> Array:
    """Return (n, n_columns): whether any feature of the column is true."""
    if features.n_columns == len(features):
        return cells
    member = features.column[:, None] == np.arange(features.n_columns)
    return floats(cells) @ like(member.astype(np.float64), cells) > 0.0
