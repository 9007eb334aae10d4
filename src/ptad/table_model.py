"""A fitted detector and the schema of its table: what takes rows of any library and needs no scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Matrix
from ptad.calibration import Calibration
from ptad.config import Config
from ptad.detector import Detector
from ptad.errors import Option, SettingError
from ptad.explanation import Explanation, make_explanation
from ptad.progress import rows_reported, shown_progress
from ptad.tables import BadCells, Schema, same_kind, same_series
from ptad.terms.base import History

if TYPE_CHECKING:
    from ptad.report.plot import Plots

logger = logging.getLogger("ptad")

BLOCK_ROWS = 2**16  # rows of an array that are encoded at a time

Rows = NDArray[Any] | Sequence[Sequence[Any]]  # what comes back as a numpy array


class TableModel:
    """Scores, p-values and explanations of rows, in the library that the rows came in.

    Attributes
    ----------
    schema_ : Schema
        How the table becomes a matrix.
    detector_ : Detector
        The fitted terms and their calibration, over encoded rows.
    false_alarm_rate_, offset_ : float
        The target rate in force, and the negated threshold.
    """

    preset: str
    schema_: Schema
    detector_: Detector
    config_: Config
    false_alarm_rate: float | str
    false_alarm_rate_: float
    offset_: float
    history_: History
    digest: str | None = None  # of the bundle that the model was loaded from, until it is changed
    verbose: int = 0
    strict: bool = False

    @overload
    def anomaly_score(self, X: Rows) -> Matrix: ...
    @overload
    def anomaly_score(self, X: Any) -> Any: ...
    def anomaly_score(self, X: Any) -> Any:
        """Return the anomaly score of every row: higher is more anomalous.

        Parameters
        ----------
        X : table or array
            Rows to score: a pandas, polars or Arrow table, an array, a list of rows, a list of dicts or a dict of
            columns.

        Returns
        -------
        Series or array of shape (n_rows,)
            A Series for pandas (with the table's index) and polars, else a numpy array.
        """
        return same_series(X, self._scores(X), "anomaly_score")

    @overload
    def p_value(self, X: Rows) -> Matrix: ...
    @overload
    def p_value(self, X: Any) -> Any: ...
    def p_value(self, X: Any) -> Any:
        """Return how often a normal row has at least this score: small for anomalies.

        Parameters
        ----------
        X : table or array
            Rows to score, as for :meth:`anomaly_score`.

        Returns
        -------
        Series or array of shape (n_rows,)
            Conformal p-values, of the kind that :meth:`anomaly_score` returns. Flagged rows are those with a p-value of
            at most ``false_alarm_rate_``.
        """
        scores = self._scores(X)
        return same_series(X, self._calibration().p_value(scores), "p_value")

    def term_scores(self, X: Any) -> Any:
        """Return what every term adds to the anomaly score: higher is more anomalous.

        Parameters
        ----------
        X : table or array
            Rows to score, as for :meth:`anomaly_score`.

        Returns
        -------
        table
            One column per term, adding up to the score, rounding aside. A pandas or polars table for such rows, else an
            Arrow table.
        """
        table = self._checked(X)
        found = self.detector_.term_scores(self._encoded(table))
        return same_kind(X, dict(zip([term.title() for term in self.config_.terms], found.T, strict=True)))

    def explain(self, X: Any) -> Explanation:
        """Return for every row and column what it adds to the score, why, what was observed and what was expected.

        Parameters
        ----------
        X : table or array
            Rows to explain, as for :meth:`anomaly_score`.

        Returns
        -------
        Explanation
            Tables of the library that the rows came in (Arrow for arrays); contributions are positive where a column
            makes the row more anomalous.
        """
        self._checked(X)
        bad = BadCells(strict=self.strict)
        explanation = make_explanation(X, self.schema_, self.detector_, bad)
        bad.warn()
        return explanation

    @property
    def plot(self) -> Plots:
        """Figures of the model, such as ``plot.scores(rows)``; they need the extra ``plot``."""
        self._check_fitted()
        from ptad.report.plot import Plots

        return Plots(self)

    def _repr_html_(self) -> str:
        from ptad.report.notebook import model_html

        return model_html(self)

    def set_false_alarm_rate(self, rate: float | str) -> Self:
        """Change the threshold without fitting again.

        Parameters
        ----------
        rate : "auto" or float in (0, 1)
            Share of normal rows that may be flagged. "auto" is 0.01, or the smallest rate that the number of
            calibration rows supports; a smaller one is refused.

        Returns
        -------
        self
            The same model, with ``false_alarm_rate_`` and ``offset_`` changed.
        """
        calibration = self._calibration()
        self.false_alarm_rate_ = calibration.rate(rate)
        self.offset_ = -calibration.threshold(self.false_alarm_rate_)
        self.false_alarm_rate = rate
        if rate == "auto" and self.false_alarm_rate_ > 0.01:
            logger.info(
                "the false-alarm rate is %.3g, the smallest that %d calibration rows support",
                self.false_alarm_rate_,
                len(calibration.scores),
            )
        return self

    def _check_fitted(self) -> None:
        """Raise if there is no model yet."""

    def _checked(self, X: Any) -> Any:
        """Return the rows, unless they or the model cannot be used."""
        self._check_fitted()
        return X

    def _scores(self, X: Any) -> Matrix:
        table = self._checked(X)
        with shown_progress(self.verbose) as progress:
            if not isinstance(table, np.ndarray) or len(table) <= BLOCK_ROWS or self.detector_.batch_size is not None:
                rows = self._encoded(table)
                return self.detector_.scores(rows, rows_reported(progress, "scoring", len(rows)))
            # Rows are independent: encoding them block by block keeps the memory beside a large array flat.
            parts = []
            for start in range(0, len(table), BLOCK_ROWS):
                done = rows_reported(progress, "scoring", len(table), start)
                parts.append(self.detector_.scores(self._encoded(table[start : start + BLOCK_ROWS]), done))
            return np.concatenate(parts)

    def _encoded(self, table: Any) -> Matrix:
        """Encode rows; cells that cannot be read are named in one warning, or refused."""
        bad = BadCells(strict=self.strict)
        rows = self.schema_.encode(table, bad)
        bad.warn()
        return rows

    def _calibration(self) -> Calibration:
        self._check_fitted()
        if self.detector_.calibration is None:
            raise no_threshold()
        return self.detector_.calibration


def no_threshold() -> SettingError:
    """Return the error for a model that was fitted without calibration where a threshold is needed."""
    return SettingError(
        "This model has no threshold: it was fitted without calibration.",
        "Recalibrate it with normal rows that it was not fitted on, or fit with {}.",
        (Option("config", ("calibration.method", "auto")),),
    )
