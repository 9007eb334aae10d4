"""Why a row has its score, told in the table's own columns, units and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.calibration import add_up
from ptad.detector import Detector
from ptad.tables import Schema, same_kind
from ptad.terms.base import Reason, TermValues

Array = NDArray[np.float64]

REASONS = {
    Reason.UNUSUAL_VALUE: "unusual value",
    Reason.UNUSUAL_COMBINATION: "unusual combination",
    Reason.MISSING: "missing",
    Reason.UNSEEN_CATEGORY: "unseen category",
}


@dataclass(frozen=True)
class Explanation:
    """Tables with one row per explained row, of the same library as the rows given (arrays give Arrow tables).

    Attributes
    ----------
    score : ndarray
        Anomaly scores, higher = more anomalous.
    contributions : table
        How much each column adds to the score, signed; a row adds up to its score.
    observed, expected : table
        The value of each cell, and the value that would be usual in this row.
    reasons : table
        Why a column adds to the score: "unusual value", "unusual combination with ...", "missing", "unseen category".
    terms : table
        How much each term adds to the score.
    names : tuple of str
        The columns, in the order of the tables.
    contribution_values : ndarray of shape (n_rows, n_columns)
        The contributions as an array.
    """

    score: Array
    contributions: Any
    observed: Any
    expected: Any
    reasons: Any
    terms: Any
    names: tuple[str, ...]
    contribution_values: Array

    def top(self, n: int = 3) -> list[list[str]]:
        """Return the n columns that contribute most, for every row."""
        order = np.argsort(-self.contribution_values, axis=1, kind="stable")[:, :n]
        return [[self.names[j] for j in row] for row in order]

    @property
    def percentages(self) -> Array:
        """Shares of the positive contributions, (n_rows, n_columns): each row adds up to 100."""
        positive = np.maximum(self.contribution_values, 0.0)
        total = positive.sum(axis=1, keepdims=True)
        return np.asarray(100.0 * positive / np.where(total > 0.0, total, 1.0))


def make_explanation(table: Any, schema: Schema, detector: Detector) -> Explanation:
    """Score rows and say which columns the scores come from."""
    rows = schema.encode(table)
    said = detector.pipeline.explain(rows)
    values = np.column_stack([part.value for part in said])
    standard = detector.units(values)
    by_term = standard * detector.weights
    score = add_up(standard, detector.weights)
    cells = np.stack([amount[:, None] * part.shares for amount, part in zip(by_term.T, said, strict=True)])
    leading = cells.argmax(axis=0)  # (n, n_columns): the term that says most about the cell
    contributions = cells.sum(axis=0)
    observed = schema.observed(table)
    expected = _expected(said, leading, schema, observed)
    unchanged = _equal(observed, expected, schema) & (_pick([p.reason for p in said], leading) <= 1)
    contributions = _balanced(_moved(contributions, unchanged), score)

    def columns(array: Array) -> Any:
        return same_kind(table, dict(zip(schema.names, array.T, strict=True)))

    return Explanation(
        score=score,
        contributions=columns(contributions),
        observed=same_kind(table, observed),
        expected=same_kind(table, expected),
        reasons=columns(_reasons(said, leading, schema.names)),
        terms=same_kind(table, dict(zip([s.title() for s in detector.config.terms], by_term.T, strict=True))),
        names=schema.names,
        contribution_values=contributions,
    )


def _pick(arrays: list[Any], leading: NDArray[np.int64]) -> Any:
    """Return for every cell the entry of its leading term."""
    return np.take_along_axis(np.stack(arrays), leading[None], axis=0)[0]


def _reasons(said: list[TermValues], leading: NDArray[np.int64], names: tuple[str, ...]) -> NDArray[np.object_]:
    reason, partner = _pick([p.reason for p in said], leading), _pick([p.partner for p in said], leading)
    words = np.array([REASONS[r] for r in Reason], dtype=object)[reason]
    beside = np.array([*(f" with {name}" for name in names), ""], dtype=object)[partner]
    return np.asarray(words + beside, dtype=object)


def _expected(
    said: list[TermValues], leading: NDArray[np.int64], schema: Schema, observed: dict[str, list[Any]]
) -> dict[str, NDArray[Any]]:
    """Return per column the value that the leading term expects, or another term if that is what was observed."""
    offers = [(i, schema.decode(part.expected)) for i, part in enumerate(said) if part.expected is not None]
    if not offers:
        return {name: np.full(len(leading), None, dtype=object) for name in schema.names}
    chosen = dict(offers[0][1])
    for j, name in enumerate(schema.names):
        for i, values in offers[1:]:
            same = _same(observed[name], chosen[name], schema.kinds[name])
            nothing = np.array([v is None or v != v for v in values[name]], dtype=bool)
            take = ((leading[:, j] == i) | same) & ~nothing
            take &= ~_same(observed[name], values[name], schema.kinds[name])
            chosen[name] = np.where(take, values[name], chosen[name])
    return chosen


def _equal(observed: dict[str, list[Any]], expected: dict[str, NDArray[Any]], schema: Schema) -> NDArray[np.bool_]:
    return np.column_stack([_same(observed[n], expected[n], schema.kinds[n]) for n in schema.names])


def _same(observed: list[Any], expected: NDArray[Any], kind: str) -> NDArray[np.bool_]:
    """Return whether an expected value reads like the observed one."""
    if kind == "number":
        seen = np.array([np.nan if v is None else float(v) for v in observed])
        made = np.asarray(expected, dtype=np.float64)
        return np.asarray(np.abs(seen - made) <= 1e-6 * np.maximum(np.abs(seen), np.abs(made)))
    return np.array([a is not None and str(a) == str(b) for a, b in zip(observed, expected.tolist(), strict=True)])


def _moved(contributions: Array, unchanged: NDArray[np.bool_]) -> Array:
    """Take what cells add whose value is the expected one, and give it to the row's other positive cells."""
    positive = np.maximum(contributions, 0.0)
    taken = np.where(unchanged, positive, 0.0)
    rest = positive - taken
    total = rest.sum(axis=1, keepdims=True)
    factor = taken.sum(axis=1, keepdims=True) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, contributions - taken + rest * factor, contributions)


def _balanced(contributions: Array, score: Array) -> Array:
    """Return contributions that add up to the score; what no column accounts for is spread evenly."""
    gap = score - contributions.sum(axis=1)
    return np.asarray(contributions + gap[:, None] / contributions.shape[1])
