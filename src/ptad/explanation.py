"""Explanations of scores, in the columns, units and categories of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, Indices, Matrix, like, namespace
from ptad.attribution import Attribution, attribute, final_contributions
from ptad.calibration import add_up
from ptad.detector import Detector, check_scores
from ptad.tables import BadCells, Schema, same_kind, same_series
from ptad.terms.base import Reason, TermValues

REASONS = {
    Reason.UNUSUAL_VALUE: "unusual value",
    Reason.UNUSUAL_COMBINATION: "unusual combination",
    Reason.MISSING: "missing",
    Reason.UNSEEN_CATEGORY: "unseen category",
}


def strongest_places(contributions: Matrix, n: int) -> NDArray[np.int64]:
    """Return for every row the places of the ``n`` columns that add most to its score, (n_rows, n)."""
    return np.argsort(-contributions, axis=1, kind="stable")[:, :n]


@dataclass(frozen=True, repr=False)
class Explanation:
    """Explanations of rows: tables with one row per row, of the library that the rows came in (Arrow for arrays).

    Parameters
    ----------
    score : Series or array
        Anomaly scores, higher = more anomalous; of the kind that :meth:`ptad.PTAD.anomaly_score` returns.
    contributions : table
        The signed contribution of each column; a row adds up to its score.
    observed : table
        The value of each cell.
    expected : table
        The value that would be usual in this row; None without an expected value.
    reasons : table
        Why a column adds to the score: "unusual value", "unusual combination with ...", "missing", "unseen category",
        or why its cell could not be read: "not a number: 'abc'".
    terms : table
        How much each term adds to the score.
    names : tuple of str
        The columns, in the order of the tables.
    contribution_values : ndarray of shape (n_rows, n_columns)
        The contributions as an array.
    """

    score: Any
    contributions: Any
    observed: Any
    expected: Any
    reasons: Any
    terms: Any
    names: tuple[str, ...]
    contribution_values: Matrix

    def top(self, n: int = 3) -> list[list[str]]:
        """Return the columns that contribute most, for every row.

        Parameters
        ----------
        n : int
            How many columns to name.

        Returns
        -------
        list of list of str
            Names of columns, the largest contribution (the most anomalous column) first.
        """
        return [[self.names[j] for j in row] for row in strongest_places(self.contribution_values, n)]

    @property
    def percentages(self) -> Any:
        """The positive contributions in percent, as a table: each row adds up to 100."""
        return same_kind(self.contributions, dict(zip(self.names, self.percentage_values.T, strict=True)))

    @property
    def score_values(self) -> Matrix:
        """The scores as an array of shape (n_rows,)."""
        return np.asarray(self.score, dtype=np.float64)

    @property
    def percentage_values(self) -> Matrix:
        """The percentages as an array of shape (n_rows, n_columns)."""
        positive = np.maximum(self.contribution_values, 0.0)
        total = positive.sum(axis=1, keepdims=True)
        return np.asarray(100.0 * positive / np.where(total > 0.0, total, 1.0))

    def plot(self, row: int = 0, *, n: int = 10, ax: Any = None) -> Any:
        """Draw the contributions of one row; needs the extra ``plot``.

        Parameters
        ----------
        row : int
            The row to draw, counted from 0; negative numbers count from the end.
        n : int
            How many columns to draw, those with the largest contributions.
        ax : matplotlib axes, optional
            Where to draw. Without it, a new figure is made.

        Returns
        -------
        matplotlib axes
            Bars to the right make the row more anomalous, bars to the left more normal.
        """
        from ptad.report.plot import draw_contributions

        return draw_contributions(self, row, n, ax)

    def __repr__(self) -> str:
        from ptad.report.notebook import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        from ptad.report.notebook import explanation_html

        return explanation_html(self)


def attribute_rows(
    rows: Array, detector: Detector, term_values: list[TermValues] | None = None
) -> tuple[Array, Array, Attribution]:
    """Return the scores of encoded rows, the contributions of the terms, and the attribution to columns.

    ``term_values`` are those of the rows, if they are known: arrays or tensors, as the rows are.
    """
    if term_values is None:
        term_values = detector.pipeline.explain(rows)
    values = detector.units(namespace(rows).stack([term.value for term in term_values], axis=1))
    weights = like(detector.config.weights, rows)
    by_term = values * weights
    reference = detector.pipeline.reference
    attribution = attribute(rows, term_values, by_term, reference.features, reference.resolution(rows))
    return add_up(values, weights), by_term, attribution


def make_explanation(
    table: Any, schema: Schema, detector: Detector, bad: BadCells | None = None, rows: Matrix | None = None
) -> Explanation:
    """Score rows and return their explanation.

    ``bad`` collects the cells that cannot be read. If the table is encoded already, pass the encoded ``rows`` and the
    ``bad`` cells of the encoding.
    """
    bad = BadCells() if bad is None else bad
    if rows is None:
        rows = schema.encode(table, bad)
    with np.errstate(invalid="ignore"):  # what is not finite is an error
        score, by_term, attribution = attribute_rows(rows, detector)
    check_scores(score)
    observed = schema.observed(table)
    expected = {name: np.full(len(rows), None, dtype=object) for name in schema.names}
    if attribution.expected is not None:
        expected = schema.decode(_expected(rows, attribution.expected, schema, detector))
    as_expected = attribution.as_expected | _same_text(observed, expected, schema)
    contributions = final_contributions(attribution.contributions, as_expected, score)

    def as_table(array: NDArray[Any]) -> Any:
        return same_kind(table, dict(zip(schema.names, array.T, strict=True)))

    return Explanation(
        score=same_series(table, score, "anomaly_score"),
        contributions=as_table(contributions),
        observed=same_kind(table, observed),
        expected=same_kind(table, expected),
        reasons=as_table(reason_texts(attribution.reason, attribution.partner, schema.names, bad)),
        terms=same_kind(table, dict(zip([s.title() for s in detector.config.terms], by_term.T, strict=True))),
        names=schema.names,
        contribution_values=contributions,
    )


def _expected(rows: Matrix, expected: Matrix, schema: Schema, detector: Detector) -> Matrix:
    """Return the expected values, rounded like the training rows.

    The neighbours of a row with an outlying number have outlying numbers, too. So a number outside of all reference
    rows is taken as missing, and the other cells of the row decide what is expected in its place.
    """
    reference, column = detector.pipeline.reference, detector.features.column
    outside = reference.is_outside(rows)[:, column]
    if len(places := np.flatnonzero(outside.any(axis=1))):
        mask = outside[places]
        others: Any = attribute_rows(np.where(mask, np.nan, rows[places]), detector)[2].expected
        expected = expected.copy()
        expected[places] = np.where(mask & ~np.isnan(others), others, expected[places])
    exact = np.array([schema.types[name] in ("categorical", "text") for name in schema.names])[column]
    return np.where(exact, expected, reference.as_recorded(expected))


def reason_texts(reason: Indices, partner: Indices, names: tuple[str, ...], bad: BadCells) -> NDArray[np.object_]:
    """Return the reasons of all cells as text, (n_rows, n_columns)."""
    words = np.array([REASONS[r] for r in Reason], dtype=object)[reason]
    other_column = np.array([*(f" with {name}" for name in names), ""], dtype=object)[partner]
    texts = np.asarray(words + other_column, dtype=object)
    for cell in bad:
        texts[cell.row, names.index(cell.column)] = cell.reason
    return texts


def _same_text(observed: dict[str, list[Any]], expected: dict[str, NDArray[Any]], schema: Schema) -> NDArray[np.bool_]:
    """Return (n_rows, n_columns): whether a text equals the expected one; different texts may have equal features."""
    same = np.zeros((len(next(iter(observed.values()))), len(schema.names)), dtype=bool)
    for j, name in enumerate(schema.names):
        if schema.types[name] == "text":
            pairs = zip(observed[name], expected[name].tolist(), strict=True)
            same[:, j] = [a is not None and str(a) == str(b) for a, b in pairs]
    return same
