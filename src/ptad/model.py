"""A model of a table: scores, p-values and explanations of rows, in the library that the rows came in.

Nothing here needs scikit-learn, whose import takes longer than a small job: :meth:`Model.load` gives a saved model
without it, and :class:`ptad.PTAD` adds ``fit`` and the methods of scikit-learn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Matrix
from ptad.calibration import Calibration
from ptad.config import Config
from ptad.detector import Detector
from ptad.devices import resolve_device
from ptad.errors import Option, SettingError
from ptad.explanation import Explanation, make_explanation
from ptad.progress import rows_reported, shown_progress
from ptad.saved_model import SavedModel, read_model
from ptad.tables import BadCells, Schema, same_kind, same_series
from ptad.terms.base import History

if TYPE_CHECKING:
    from ptad.report.plot import Plots

logger = logging.getLogger("ptad")

BLOCK_ROWS = 2**16  # rows of an array that are encoded at a time

Rows = NDArray[Any] | Sequence[Sequence[Any]]  # what comes back as a numpy array


class Model:
    """A fitted model that scores and explains rows; :meth:`load` reads one that was saved.

    Attributes
    ----------
    schema_ : Schema
        How the table becomes a matrix.
    config_ : Config
        All settings in force.
    detector_ : Detector
        The fitted terms and their calibration, over encoded rows.
    false_alarm_rate_ : float
        The target rate in force; NaN without calibration.
    offset_ : float
        The negated threshold; NaN without calibration.
    history_ : list of dict
        Loss per interval, of terms that are trained.
    digest : str or None
        SHA-256 of the manifest that the model was read from; None after a change.
    manifest : dict
        That manifest.
    """

    preset: str
    schema_: Schema
    config_: Config
    detector_: Detector
    false_alarm_rate: float | str
    false_alarm_rate_: float
    offset_: float
    held_out_scores_: Matrix
    history_: History
    digest: str | None = None
    manifest: dict[str, Any]
    verbose: int = 0
    strict: bool = False

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto", label: str | None = None) -> Self:
        """Read a model; the same machine gives the same scores, bit for bit.

        Parameters
        ----------
        folder : path
            Where :meth:`ptad.PTAD.save` or ``ptad fit`` wrote it.
        device : str
            "auto" (a GPU if there is one and torch is installed), "cpu", "cuda", "cuda:1", ...
        label : str, optional
            Name of the model in error messages; by default its path.

        Returns
        -------
        self
            The model, with the threshold that it was saved with.
        """
        saved = read_model(folder, resolve_device(device), label)
        model = cls._from_saved(saved, device)
        model.schema_ = saved.schema
        model._set_detector(saved.detector, saved.manifest["false_alarm_rate"])
        model.history_ = saved.manifest["history"]
        model.digest = saved.digest
        return model

    @classmethod
    def _from_saved(cls, saved: SavedModel, device: str) -> Self:
        """Return a model with its saved parameters, without the fitted attributes."""
        model = cls()
        model.manifest = saved.manifest
        parameters = saved.manifest["parameters"]
        model.preset, model.false_alarm_rate = parameters["preset"], parameters["false_alarm_rate"]
        return model

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
            Conformal p-values, of the type that :meth:`anomaly_score` returns. Flagged rows are those with a p-value of
            at most ``false_alarm_rate_``.
        """
        scores = self._scores(X)
        return same_series(X, self._calibration().p_value(scores), "p_value")

    def term_scores(self, X: Any) -> Any:
        """Return the contribution of every term to the anomaly score: higher is more anomalous.

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
        table = self._validate(X)
        scores = self.detector_.term_scores(self._encode(table))
        return same_kind(X, dict(zip([term.title() for term in self.config_.terms], scores.T, strict=True)))

    def explain(self, X: Any) -> Explanation:
        """Return the contribution, reason, observed and expected value of every column in every row.

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
        self._validate(X)
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

    def __repr__(self) -> str:
        from ptad.report.notebook import model_text

        return model_text(self)

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
        self._set_rate(rate)
        self.false_alarm_rate = rate
        return self

    def _set_detector(self, detector: Detector, rate: float | str) -> None:
        """Set the detector and everything that follows from it."""
        self.__dict__.pop("digest", None)
        self.detector_ = detector
        self.config_ = detector.config
        self.history_ = detector.history
        self.held_out_scores_ = detector.held_out_scores
        self.false_alarm_rate_ = self.offset_ = float("nan")
        if detector.calibration is not None:
            self._set_rate(rate)

    def _set_rate(self, rate: float | str) -> None:
        calibration = self._calibration()
        self.false_alarm_rate_ = calibration.rate(rate)
        self.offset_ = -calibration.threshold(self.false_alarm_rate_)
        if rate == "auto" and self.false_alarm_rate_ > 0.01:
            logger.info(
                "the false-alarm rate is %.3g, the smallest that %d calibration rows support",
                self.false_alarm_rate_,
                len(calibration.scores),
            )

    def _check_fitted(self) -> None:
        """Raise if the model is not fitted."""

    def _validate(self, X: Any) -> Any:
        """Return the rows as a table or an array; raise if they cannot be scored."""
        self._check_fitted()
        return X

    def _scores(self, X: Any) -> Matrix:
        table = self._validate(X)
        with shown_progress(self.verbose) as progress:
            if not isinstance(table, np.ndarray) or len(table) <= BLOCK_ROWS or self.detector_.batch_size is not None:
                rows = self._encode(table)
                return self.detector_.scores(rows, rows_reported(progress, "scoring", len(rows)))
            # Rows are independent: encoding them block by block needs little memory.
            parts = []
            for start in range(0, len(table), BLOCK_ROWS):
                done = rows_reported(progress, "scoring", len(table), start)
                parts.append(self.detector_.scores(self._encode(table[start : start + BLOCK_ROWS]), done))
            return np.concatenate(parts)

    def _encode(self, table: Any) -> Matrix:
        """Encode rows; cells that cannot be read are named in one warning, or are an error."""
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
        "Recalibrate it with normal rows that it was not fitted on, or fit with {config}.",
        options=(Option("config", ("calibration.method", "auto")),),
    )
