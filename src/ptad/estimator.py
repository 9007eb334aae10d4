"""PTAD: the detector as a scikit-learn estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ptad.calibration import rows_needed
from ptad.config import Config, make_config
from ptad.detector import Detector
from ptad.devices import resolve_device
from ptad.errors import DataError
from ptad.progress import rows_reported, shown_progress
from ptad.saved_model import SavedModel, save_model
from ptad.sklearn_detector import READING, SAVED, SklearnDetector, check_parameters
from ptad.storage import to_plain_types
from ptad.tables import BadCells, fit_schema

logger = logging.getLogger("ptad")


class PTAD(SklearnDetector):
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
    types : mapping of column to type, optional
        Types that you choose yourself, such as "categorical" or "date:%d/%m/%Y"; such a column is kept, even if it
        never varies.
    missing : iterable of str
        Text that means "missing". NaN, None, NA, NaT and nulls always do.
    drop : iterable of str
        Columns not to use.
    only : iterable of str, optional
        The only columns to use.
    decimal, thousands : str, optional
        Signs in numbers that are written as text; by default inferred from the values.
    strict : bool
        Whether a cell that cannot be read, such as "abc" among numbers, is an error. Otherwise it counts as missing,
        and one warning (``ptad.tables.BadCellsWarning``) names such cells.
    random_state : int, RandomState or None
        The same number gives the same model on the same machine.
    verbose : int
        0 shows warnings only; 1 shows progress, too: a bar on a terminal, plain lines on stderr elsewhere.

    Attributes
    ----------
    schema_, config_, detector_, history_, false_alarm_rate_ : object
        Those of :class:`ptad.Model`.
    offset_ : float
        ``decision_function = score_samples - offset_``.
    held_out_scores_ : ndarray
        Scores of the training rows by models that were fitted without them; NaN where there is none.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : ndarray of str
        Their names, if the training rows were a table.
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        false_alarm_rate: float | str = "auto",
        config: Mapping[str, Any] | Config | None = None,
        device: str = "auto",
        types: Mapping[str, str] | None = None,
        missing: Iterable[str] = (),
        drop: Iterable[str] = (),
        only: Iterable[str] | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        strict: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        self.preset = preset
        self.false_alarm_rate = false_alarm_rate
        self.config = config
        self.device = device
        self.types = types
        self.missing = missing
        self.drop = drop
        self.only = only
        self.decimal = decimal
        self.thousands = thousands
        self.strict = strict
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, checkpoint: str | os.PathLike[str] | None = None) -> Self:
        """Fit on normal rows.

        Parameters
        ----------
        X : table or array
            Normal rows: a pandas, polars or Arrow table, an array, a list of rows, a list of dicts or a dict of
            columns. NaN and null cells are missing values.
        y : object
            Ignored; it is there for scikit-learn.
        checkpoint : path, optional
            A folder that an interrupted fit of the same rows resumes from (terms that are trained). It is left in
            place: delete it when done.

        Returns
        -------
        self
            The fitted detector.
        """
        config = check_parameters(self)
        table = self._validate(X, reset=True)
        bad = BadCells(strict=self.strict)
        schema = fit_schema(table, **{name: getattr(self, name) for name in READING}, bad=bad)
        bad.warn()
        for note in schema.notes:
            logger.log(logging.WARNING if note.doubtful else logging.INFO, note.message)
        rows = schema.encode(table, BadCells())  # the warning has been given
        text = schema.counted(table)
        opening = (
            f"fitting on {len(rows):,} rows and {len(schema.names):,} column{'' if len(schema.names) == 1 else 's'}"
        )
        with shown_progress(self.verbose, opening) as progress:
            detector = Detector.fit(
                rows,
                schema.features,
                config,
                seed=self._seed(),
                device=resolve_device(self.device),
                false_alarm_rate=self.false_alarm_rate,
                progress=progress,
                checkpoint=None if checkpoint is None else Path(checkpoint),
                encode_without=None if text is None else text.rows,
            )
        if text is not None and np.isnan(detector.held_out_scores).any():  # a split: calibration rows are not counted
            schema = text.without(rows, np.flatnonzero(~np.isnan(detector.held_out_scores)))
        self.schema_ = schema
        self._set_detector(detector, self.false_alarm_rate)
        return self

    def update(self, X: Any) -> Self:
        """Update with further normal rows: half of them join the reference rows, the other half gives the threshold.

        Columns and categories stay those of ``fit``: where they have changed, fit again. Rows that are too few for the
        false-alarm rate in force are refused.

        Parameters
        ----------
        X : table or array
            New normal rows, as for :meth:`fit`. The false-alarm rate holds for rows like these.

        Returns
        -------
        self
            The updated detector.
        """
        rows = self._encode_new(X, "An update takes its threshold from half of the new rows", 2)
        with shown_progress(self.verbose, f"updating with {len(rows):,} rows") as progress:
            detector = self.detector_.update(
                rows, seed=self._seed(), false_alarm_rate=self._present_rate(), progress=progress
            )
        self._set_detector(detector, self._present_rate())
        return self

    def recalibrate(self, X: Any) -> Self:
        """Take the threshold and p-values from these normal rows; the scores stay the same.

        Parameters
        ----------
        X : table or array
            Normal rows that the model was not fitted on, as for :meth:`fit`.

        Returns
        -------
        self
            The recalibrated detector.
        """
        rows = self._encode_new(X, "A threshold is taken from the rows given", 1)
        with shown_progress(self.verbose) as progress:
            detector = self.detector_.recalibrated(rows, rows_reported(progress, "calibration", len(rows)))
        self._set_detector(detector, self._present_rate())
        return self

    def _present_rate(self) -> float | str:
        """Return the rate in force, which no update may change; without calibration the parameter."""
        return self.false_alarm_rate_ if self.detector_.calibration is not None else self.false_alarm_rate

    def _encode_new(self, X: Any, what: str, factor: int) -> NDArray[np.float64]:
        """Encode new rows; refuse fewer than ``factor`` times as many as the false-alarm rate needs."""
        rows = self._encode(self._validate(X))
        rate = self._present_rate()
        needed = 2 if rate == "auto" else rows_needed(float(rate))
        if len(rows) // factor < needed:
            raise DataError(
                f"{what}, and a false-alarm rate of {rate if rate == 'auto' else f'{rate:.3g}'} needs "
                f"{factor * needed:,} rows; there are {len(rows):,}. The model is unchanged. Give more rows, or set a "
                "larger false-alarm rate."
            )
        return rows

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder of safetensors and JSON.

        It holds the reference rows, that is some training rows: treat it as you treat the data.

        Parameters
        ----------
        folder : path
            Where to write it. An existing model is replaced; any other existing folder is an error.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        save_model(
            folder,
            self.schema_,
            self.detector_,
            None if self.detector_.calibration is None else self.false_alarm_rate_,
            parameters={name: to_plain_types(getattr(self, name)) for name in SAVED},
            n_features_in=self.n_features_in_,
            feature_names_in=None if names is None else [str(name) for name in names],
            history=self.history_,
        )

    @classmethod
    def _from_saved(cls, saved: SavedModel, device: str) -> Self:
        manifest = saved.manifest
        parameters: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in manifest["parameters"].items()
        }
        config = saved.detector.config
        is_preset = config == make_config(parameters["preset"])
        model = cls(**parameters, config=None if is_preset else config, device=device)
        model.n_features_in_ = manifest["n_features_in"]
        if manifest["feature_names_in"] is not None:
            model.feature_names_in_ = np.asarray(manifest["feature_names_in"], dtype=object)
        return model
