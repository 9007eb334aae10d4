"""PTAD: the detector as a scikit-learn estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ptad.calibration import Calibration, rows_needed
from ptad.config import PRESETS, Config, make_config
from ptad.detector import Detector
from ptad.devices import resolve_device
from ptad.errors import DataError, SettingError
from ptad.explanation import Explanation, make_explanation
from ptad.model import Model
from ptad.progress import fit_progress
from ptad.storage import plain, write_bundle
from ptad.tables import BadCells, fit_schema
from ptad.tables.borders import as_frame
from ptad.tables.type_doubts import TypeDoubt

logger = logging.getLogger("ptad")

BLOCK_ROWS = 2**16  # rows of an array that are encoded at a time
# Where it runs and what it says is for the next machine to choose; settings are saved as a whole.
SAVED_PARAMETERS = ("preset", "false_alarm_rate", "kinds", "missing", "drop", "only", "random_state")

Array = NDArray[np.float64]


class PTAD(OutlierMixin, TransformerMixin, BaseEstimator):
    """One-class anomaly detection in tables.

    Fits on normal rows; scores any row on its own, whatever rows are beside it.

    Parameters
    ----------
    preset : {"default", "paper"}
        The terms that the score is made of: what measures best on hundreds of tables, or the paper's network.
    false_alarm_rate : "auto" or float in (0, 1)
        Share of normal rows that may be flagged. "auto" is 0.01, or the smallest rate that the number of calibration
        rows supports.
    config : mapping or Config, optional
        Settings that differ from the preset, by dotted name: ``{"local_reconstruction.ridge": 0.1}``.
    device : str
        "auto" (a GPU if there is one and torch is installed), "cpu", "cuda", "cuda:1", ...
    kinds, missing, drop, only
        How to read a table's columns; see :func:`ptad.tables.fit_schema`.
    strict : bool
        Whether a cell that cannot be read, such as "abc" among numbers, is an error. Otherwise it counts as missing,
        and one warning (``ptad.tables.BadCellsWarning``) names such cells.
    random_state : int, RandomState or None
        The same number gives the same model on the same machine.
    verbose : int
        0 is quiet; otherwise a progress bar on a terminal and ``logging`` elsewhere.

    Attributes
    ----------
    schema_ : Schema
        How the table becomes a matrix.
    config_ : Config
        All settings in force.
    detector_ : Detector
        The fitted terms and their calibration, over encoded rows.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    false_alarm_rate_ : float
        The target rate in force.
    history_ : list of dict
        Loss per interval, of terms that are trained.
    held_out_scores_ : ndarray
        Scores of the training rows by models that were fitted without them; NaN where there is none.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        false_alarm_rate: float | str = "auto",
        config: Mapping[str, Any] | Config | None = None,
        device: str = "auto",
        kinds: Mapping[str, str] | None = None,
        missing: Iterable[str] = (),
        drop: Iterable[str] = (),
        only: Iterable[str] | None = None,
        strict: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        self.preset = preset
        self.false_alarm_rate = false_alarm_rate
        self.config = config
        self.device = device
        self.kinds = kinds
        self.missing = missing
        self.drop = drop
        self.only = only
        self.strict = strict
        self.random_state = random_state
        self.verbose = verbose

    # fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, checkpoint: str | os.PathLike[str] | None = None) -> Self:
        """Fit on normal rows.

        Parameters
        ----------
        X : array, or pandas, polars or Arrow table
            Normal rows. NaN and null cells are missing values.
        y : ignored
        checkpoint : path, optional
            A folder that an interrupted fit of the same rows resumes from (terms that are trained). It is left in
            place: delete it when done.
        """
        self._check_parameters()
        config = make_config(self.preset, self.config)
        table = self._input(X, reset=True)
        bad = BadCells(strict=self.strict)
        doubts: list[TypeDoubt] = []
        schema = fit_schema(
            table, kinds=self.kinds, missing=self.missing, drop=self.drop, only=self.only, bad=bad, doubts=doubts
        )
        bad.warn()
        for doubt in doubts:
            logger.warning("%s", doubt)
        with fit_progress(self.verbose) as progress:
            detector = Detector.fit(
                schema.encode(table, BadCells()),
                schema.features,
                config,
                seed=self._seed(),
                device=resolve_device(self.device),
                false_alarm_rate=self.false_alarm_rate,
                progress=progress,
                checkpoint=None if checkpoint is None else Path(checkpoint),
            )
        self.schema_ = schema
        self._adopt(detector)
        return self

    def update(self, X: Any) -> Self:
        """Take in further normal rows: half of them join the reference rows, the other half gives the threshold.

        Columns and categories stay those of ``fit``: where they have changed, fit again. Rows that are too few for the
        false-alarm rate in force are refused.

        Parameters
        ----------
        X : array, or pandas, polars or Arrow table
            New normal rows. The false-alarm rate holds for rows like these.
        """
        table = self._input(X)
        rows = self._encode(table)
        self._check_enough(len(rows) // 2, "An update takes its threshold from half of the new rows", 2)
        with fit_progress(self.verbose) as progress:
            detector = self.detector_.update(
                rows, seed=self._seed(), false_alarm_rate=self._rate_to_keep(), progress=progress
            )
        self._adopt(detector, rate=self._rate_to_keep())
        return self

    def recalibrate(self, X: Any) -> Self:
        """Take the threshold and p-values from these normal rows, which the model must not have been fitted on."""
        table = self._input(X)
        rows = self._encode(table)
        self._check_enough(len(rows), "A threshold is taken from the rows given", 1)
        self._adopt(self.detector_.recalibrated(rows), rate=self._rate_to_keep())
        return self

    def set_false_alarm_rate(self, rate: float | str) -> Self:
        """Change the threshold without fitting again."""
        calibration = self._calibration()
        if isinstance(rate, str) and rate != "auto":
            raise SettingError(f"A false_alarm_rate must be 'auto' or a number between 0 and 1. Got {rate!r} instead.")
        self.false_alarm_rate_ = calibration.rate(rate)
        self.false_alarm_rate = rate
        self.offset_ = -calibration.threshold(self.false_alarm_rate_)
        if rate == "auto" and self.false_alarm_rate_ > 0.01:
            logger.info(
                "the false-alarm rate is %.3g, the smallest that %d calibration rows support",
                self.false_alarm_rate_,
                len(calibration.scores),
            )
        return self

    def _rate_to_keep(self) -> float | str:
        """The rate in force, which no update may loosen; "auto" where there is none yet."""
        return self.false_alarm_rate_ if self.detector_.calibration is not None else self.false_alarm_rate

    def _check_enough(self, n_rows: int, what: str, factor: int) -> None:
        rate = self._rate_to_keep()
        needed = 2 if rate == "auto" else rows_needed(float(rate))
        if n_rows < needed:
            raise DataError(
                f"{what}, and a false-alarm rate of {rate if rate == 'auto' else f'{rate:.3g}'} needs "
                f"{factor * needed:,} rows. Give at least as many, or set a larger rate first with "
                "set_false_alarm_rate; the model is unchanged."
            )

    def _adopt(self, detector: Detector, rate: float | str | None = None) -> None:
        self.detector_ = detector
        self.config_ = detector.config
        self.history_ = detector.history
        self.held_out_scores_ = detector.held_out_scores
        self.n_iter_ = 1
        self.offset_ = float("nan")
        if detector.calibration is not None:
            wanted = self.false_alarm_rate
            self.set_false_alarm_rate(wanted if rate is None else rate)
            self.false_alarm_rate = wanted

    def _check_parameters(self) -> None:
        for name in ("kinds", "config"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping | Config):
                raise SettingError(f"The '{name}' parameter of PTAD must be a mapping. Got {value!r} instead.")
        if not isinstance(self.preset, str):
            raise SettingError(f"There is no preset {self.preset!r}. Choose one of: {', '.join(PRESETS)}.")
        if not isinstance(self.strict, bool | np.bool_):
            raise SettingError(f"The 'strict' parameter of PTAD must be true or false. Got {self.strict!r} instead.")
        if not isinstance(self.verbose, int) or self.verbose < 0:
            raise SettingError(f"The 'verbose' parameter of PTAD must be 0, 1 or more. Got {self.verbose!r} instead.")
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise SettingError(
                "The 'random_state' parameter of PTAD must be None, a RandomState or a number from 0 to 2**32 - 1. "
                f"Got {self.random_state!r} instead."
            ) from error
        if not isinstance(self.device, str):
            raise SettingError(f"The 'device' parameter of PTAD must be text. Got {self.device!r} instead.")
        rate = self.false_alarm_rate
        if rate != "auto" and not (isinstance(rate, int | float | np.number) and 0.0 < float(rate) < 1.0):
            raise SettingError(
                "The 'false_alarm_rate' parameter of PTAD must be 'auto' or a float in the range (0.0, 1.0). "
                f"Got {rate!r} instead."
            )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    # scoring ------------------------------------------------------------------------------------------------------

    def anomaly_score(self, X: Any) -> Array:
        """Return the anomaly score of every row: higher is more anomalous."""
        table = self._input(X)
        if not isinstance(table, np.ndarray) or len(table) <= BLOCK_ROWS or self.detector_.batch_size is not None:
            return self.detector_.scores(self._encode(table))
        # Rows are independent: encoding them block by block keeps the memory beside a large array flat.
        blocks = range(0, len(table), BLOCK_ROWS)
        return np.concatenate([self.detector_.scores(self._encode(table[i : i + BLOCK_ROWS])) for i in blocks])

    def score_samples(self, X: Any) -> Array:
        """Return the negated anomaly score: higher is more normal (scikit-learn's sign)."""
        return -self.anomaly_score(X)

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples - offset_``: negative for anomalies."""
        self._calibration()
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for anomalies."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def p_value(self, X: Any) -> Array:
        """Return how often a normal row has at least this score: small for anomalies."""
        scores = self.anomaly_score(X)
        return self._calibration().p_value(scores)

    def term_scores(self, X: Any) -> dict[str, Array]:
        """Return what every term adds to the anomaly score; they add up to it, rounding aside."""
        table = self._input(X)
        found = self.detector_.term_scores(self._encode(table))
        return dict(zip([term.title() for term in self.config_.terms], found.T, strict=True))

    def explain(self, X: Any) -> Explanation:
        """Return for every row and column what it adds to the score, why, what was observed and what was expected."""
        table = self._input(X)
        bad = BadCells(strict=self.strict)
        explanation = make_explanation(table, self.schema_, self.detector_, bad)
        bad.warn()
        return explanation

    def transform(self, X: Any) -> Array:
        """Return the rows as the first term sees them: residuals per column (default) or the P-space (paper)."""
        table = self._input(X)
        return self.detector_.pipeline.transform(self._encode(table))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`."""
        check_is_fitted(self)
        names = self.detector_.pipeline.terms[0].transform_names()
        return np.array([name.format(*self.schema_.names) for name in names], dtype=object)

    def _calibration(self) -> Calibration:
        check_is_fitted(self)
        if self.detector_.calibration is None:
            raise SettingError(
                "This model has no threshold: it was fitted without calibration. Fit with calibration.method='auto', "
                "or call recalibrate(rows) with normal rows that it was not fitted on."
            )
        return self.detector_.calibration

    # the border to scikit-learn -----------------------------------------------------------------------------------

    def _input(self, X: Any, *, reset: bool = False) -> Any:
        """Let scikit-learn check arrays; tables are checked by the schema, which knows their columns by name."""
        if not reset:
            check_is_fitted(self)
        if hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "schema"):
            if reset:
                as_frame(X, wanted=lambda name: False)  # names a column that is there twice; scikit-learn stumbles
                validate_data(self, X, reset=True, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, ensure_all_finite=False, ensure_min_samples=2 if reset else 1)

    def _encode(self, table: Any) -> Array:
        """Encode rows; cells that cannot be read are named in one warning, or refused."""
        bad = BadCells(strict=self.strict)
        rows = self.schema_.encode(table, bad)
        bad.warn()
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "detector_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # residuals are float64 whatever comes in
        return tags

    # storage ------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder of safetensors and JSON.

        It holds the reference rows, that is some training rows: treat it as you treat the data.
        """
        check_is_fitted(self)
        detector = self.detector_
        arrays = {"reference": detector.reference, "units": np.stack([detector.units.mean, detector.units.spread])}
        for settings, term in zip(detector.config.terms, detector.pipeline.terms, strict=True):
            arrays |= {f"{settings.title()}.{key}": value for key, value in term.state().items()}
        if detector.calibration is not None:
            arrays["calibration"] = detector.calibration.scores
        names = getattr(self, "feature_names_in_", None)
        content = {
            "parameters": {name: plain(getattr(self, name)) for name in SAVED_PARAMETERS},
            "config": detector.config.to_json(),
            "schema": self.schema_.to_json(),
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "false_alarm_rate": None if detector.calibration is None else self.false_alarm_rate_,
            "n_rows": len(self.held_out_scores_),
            "history": self.history_,
        }
        write_bundle(folder, content, arrays)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model; the same machine gives the same scores, bit for bit."""
        saved = Model.load(folder, device=device)
        content = saved.content
        model = cls(**content["parameters"], config=saved.config_, device=device)
        model.schema_ = saved.schema_
        model.n_features_in_ = content["n_features_in"]
        if content["feature_names_in"] is not None:
            model.feature_names_in_ = np.asarray(content["feature_names_in"], dtype=object)
        model._adopt(saved.detector_, rate=content["false_alarm_rate"])
        model.history_ = content["history"]
        return model
