"""PTAD: the detector as a scikit-learn estimator."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ptad.config import Config, make_config
from ptad.errors import SettingError
from ptad.fitting import Columns, Fitted, fit_matrix, make_retrieval
from ptad.model import Network
from ptad.progress import fit_progress
from ptad.scoring import PART_NAMES, Calibration, Explanation, Parts, Scorer, Space, make_explanation
from ptad.storage import plain, read_bundle, write_bundle
from ptad.tables import Schema, fit_schema
from ptad.tables.borders import as_frame
from ptad.updating import continued_history, update_matrix

logger = logging.getLogger("ptad")

BLOCK_ROWS = 2**16  # rows of an array that are encoded at a time
# Where it runs and what it says is for the next machine to choose; the settings of the network are saved as a whole.
SAVED_PARAMETERS = (
    *("preset", "false_alarm_rate", "context", "mixed_precision"),
    *("kinds", "missing", "drop", "only", "random_state"),
)

Array = NDArray[np.float64]


class PTAD(OutlierMixin, TransformerMixin, BaseEstimator):
    """Mask-aware prototype learning for one-class anomaly detection in tables.

    Learns from normal rows; scores any row on its own, never depending on the rows beside it.

    Parameters
    ----------
    preset : {"default", "paper"}
        Settings to start from: what measures best, or what the paper says.
    false_alarm_rate : "auto" or float in (0, 1)
        Share of normal rows that may raise an alarm. "auto" is 0.01, or the smallest rate that the number of
        calibration rows supports.
    config : mapping or Config, optional
        Fields of :class:`ptad.Config` that differ from the preset.
    context : {"reference", "batch"}
        What a row is compared with when it is scored: fixed training rows, or its batch (the paper's text).
    device : str
        "auto" (a GPU if there is one), "cpu", "cuda", "cuda:1", ...
    mixed_precision : bool
        Train in bfloat16 where that is safe; on a GPU only.
    kinds, missing, drop, only
        How to read a table's columns; see :func:`ptad.tables.fit_schema`.
    random_state : int, RandomState or None
        The same number gives the same model on the same machine.
    verbose : int
        0 is quiet; otherwise a progress bar on a terminal and ``logging`` elsewhere.

    Attributes
    ----------
    schema_ : Schema
        How the table becomes a matrix.
    config_ : Config
    offset_ : float
        ``decision_function = score_samples - offset_``.
    false_alarm_rate_ : float
        The promised rate in force.
    history_ : list of dict
        Loss parts per interval.
    held_out_scores_ : ndarray
        Scores of the training rows by networks that did not learn from them; NaN where there is none.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "preset": [StrOptions({"default", "paper"})],
        "false_alarm_rate": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "config": [Mapping, Config, None],
        "context": [StrOptions({"reference", "batch"})],
        "device": [str],
        "mixed_precision": ["boolean"],
        "kinds": [Mapping, None],
        "missing": [Iterable],
        "drop": [Iterable],
        "only": [Iterable, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        preset: str = "default",
        *,
        false_alarm_rate: float | str = "auto",
        config: Mapping[str, Any] | Config | None = None,
        context: str = "reference",
        device: str = "auto",
        mixed_precision: bool = False,
        kinds: Mapping[str, str] | None = None,
        missing: Iterable[str] = (),
        drop: Iterable[str] = (),
        only: Iterable[str] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        self.preset = preset
        self.false_alarm_rate = false_alarm_rate
        self.config = config
        self.context = context
        self.device = device
        self.mixed_precision = mixed_precision
        self.kinds = kinds
        self.missing = missing
        self.drop = drop
        self.only = only
        self.random_state = random_state
        self.verbose = verbose

    # learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, checkpoint: str | os.PathLike[str] | None = None) -> Self:
        """Learn from normal rows.

        Parameters
        ----------
        X : array, or pandas, polars or Arrow table
            Normal rows. NaN and null cells are missing values.
        y : ignored
        checkpoint : path, optional
            A folder that an interrupted fit of the same rows resumes from. It is left in place: delete it when done.
        """
        self._validate_params()
        config = make_config(self.preset, self.config)
        device = resolve_device(self.device)
        table = self._input(X, reset=True)
        schema = fit_schema(
            table,
            scaling=config.scaling,
            clip=config.clip,
            kinds=self.kinds,
            missing=self.missing,
            drop=self.drop,
            only=self.only,
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with fit_progress(self.verbose) as progress:
            fitted = fit_matrix(
                schema.encode(table),
                Columns(schema.missing_rate, schema.groups),
                config,
                seed=seed,
                device=device,
                false_alarm_rate=self.false_alarm_rate,
                amp=self.mixed_precision and device.type == "cuda",
                progress=progress,
                checkpoint=None if checkpoint is None else Path(checkpoint),
            )
        self._adopt(schema, config, fitted)
        return self

    def update(self, X: Any, *, n_steps: int | None = None) -> Self:
        """Go on learning from further normal rows, without starting anew, and take the threshold from half of them.

        Columns, categories and scaling stay those of ``fit``: where they have changed, fit anew.

        Parameters
        ----------
        X : array, or pandas, polars or Arrow table
            New normal rows. They speak for the rows to come: the false-alarm rate is promised for rows like these.
        n_steps : int, optional
            Steps of training; a quarter of the fit's unless told.
        """
        table = self._input(X)
        if n_steps is not None and n_steps < 1:
            raise SettingError(f"The 'n_steps' parameter of update must be at least 1. Got {n_steps} instead.")
        with fit_progress(self.verbose) as progress:
            fitted = update_matrix(
                self.scorer_,
                self.schema_.encode(table),
                Columns(self.schema_.missing_rate, self.schema_.groups),
                self.config_,
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                false_alarm_rate=self.false_alarm_rate,
                n_steps=n_steps,
                amp=self.mixed_precision and self.scorer_.device.type == "cuda",
                progress=progress,
            )
        fitted.history = continued_history(self.history_, fitted.history)
        self._adopt(self.schema_, self.config_, fitted)
        return self

    def recalibrate(self, X: Any) -> Self:
        """Take these normal rows, which the network must not have learned from, for p-values and threshold."""
        scores = self.anomaly_score(X)
        self.calibration_: Calibration | None = Calibration(scores)
        return self.set_false_alarm_rate(self.false_alarm_rate)

    def set_false_alarm_rate(self, rate: float | str) -> Self:
        """Change the threshold without learning anew."""
        check_is_fitted(self)
        if isinstance(rate, str) and rate != "auto":
            raise SettingError(f"A false_alarm_rate must be 'auto' or a number between 0 and 1. Got {rate!r} instead.")
        self.false_alarm_rate_ = self._calibration().rate(rate)
        self.false_alarm_rate = rate
        self.offset_ = -self._calibration().threshold(self.false_alarm_rate_)
        if rate == "auto" and self.false_alarm_rate_ > 0.01:
            logger.info(
                "the false-alarm rate is %.3g, the smallest that %d calibration rows support",
                self.false_alarm_rate_,
                len(self._calibration().scores),
            )
        return self

    def _adopt(self, schema: Schema, config: Config, fitted: Fitted) -> None:
        self.schema_ = schema
        self.config_ = config
        self.scorer_ = fitted.scorer
        self.calibration_ = fitted.calibration
        self.history_ = fitted.history
        self.held_out_scores_ = fitted.held_out_scores
        self.n_iter_ = config.n_steps
        if self.calibration_ is None:
            self.offset_ = float("nan")
        else:
            self.set_false_alarm_rate(self.false_alarm_rate)

    # scoring ------------------------------------------------------------------------------------------------------

    def anomaly_score(self, X: Any) -> Array:
        """Return the anomaly score (Eq. 8) of every row: higher is more anomalous."""
        return self._parts(X).score

    def score_samples(self, X: Any) -> Array:
        """Return the negated anomaly score: higher is more normal (scikit-learn's sign)."""
        return -self._parts(X).score

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples - offset_``: negative for anomalies."""
        self._calibration()
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for anomalies."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def p_value(self, X: Any) -> Array:
        """Return how often a normal row is at least this strange: small for anomalies."""
        scores = self.anomaly_score(X)
        return self._calibration().p_value(scores)

    def score_parts(self, X: Any) -> dict[str, Array]:
        """Return the parts of the anomaly score as they are added up: higher is more anomalous."""
        parts = self._parts(X)
        return {name: getattr(parts, name) for name in PART_NAMES}

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the P-space representation of every row, by the first member: (n_rows, latent_dim)."""
        table = self._input(X)
        return self.scorer_.latent(self.schema_.encode(table), self._context())

    def explain(self, X: Any) -> Explanation:
        """Return for every row and column what it adds to the score, what was observed and what was expected."""
        return make_explanation(self._input(X), self.schema_, self.scorer_, self._context())

    def _parts(self, X: Any) -> Parts:
        table = self._input(X)
        if not isinstance(table, np.ndarray) or self.context == "batch" or len(table) <= BLOCK_ROWS:
            return self.scorer_.parts(self.schema_.encode(table), self._context())
        # Rows are independent: encoding them block by block keeps the memory beside a large array flat.
        blocks = range(0, len(table), BLOCK_ROWS)
        return Parts.concatenate(
            [self.scorer_.parts(self.schema_.encode(table[i : i + BLOCK_ROWS]), self._context()) for i in blocks]
        )

    def _context(self) -> Any:
        return self.context

    def _calibration(self) -> Calibration:
        check_is_fitted(self)
        if self.calibration_ is None:
            raise SettingError(
                "This model has no threshold: it was fitted with calibration='none'. Fit with calibration='auto', or "
                "call recalibrate(rows) with normal rows that it did not learn from."
            )
        return self.calibration_

    # the border to scikit-learn -----------------------------------------------------------------------------------

    def _input(self, X: Any, *, reset: bool = False) -> Any:
        """Let scikit-learn judge arrays; tables are judged by the schema, which knows their columns by name."""
        if not reset:
            check_is_fitted(self)
        if hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "schema"):
            if reset:
                as_frame(X, wanted=lambda name: False)  # names a column that is there twice; scikit-learn stumbles
                validate_data(self, X, reset=True, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, ensure_all_finite=False, ensure_min_samples=2 if reset else 1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scorer_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # the P-space is float32 whatever comes in
        return tags

    # storage ------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as a folder of safetensors and JSON.

        It holds the reference rows, that is some training rows: treat it as you treat the data.
        """
        check_is_fitted(self)
        scorer = self.scorer_
        tensors = {f"network.{k}": v.float() for k, v in scorer.network.state_dict().items()}
        tensors["reference_rows"] = scorer.reference_rows.float()
        tensors |= {"space.centre": scorer.space.centre, "space.unit": scorer.space.unit}
        if scorer.space.pass_of is not None:
            tensors["space.pass_of"] = scorer.space.pass_of
        if scorer.retrieval is not None:
            tensors["bank"] = scorer.retrieval.rows.float()
        if self.calibration_ is not None:
            tensors["calibration"] = torch.from_numpy(self.calibration_.scores)
        names = getattr(self, "feature_names_in_", None)
        content = {
            "parameters": {name: plain(getattr(self, name)) for name in SAVED_PARAMETERS},
            "config": self.config_.to_json(),
            "schema": self.schema_.to_json(),
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "n_members": scorer.network.n_members,
            "network_factor": scorer.network_factor,
            "retrieval_units": None if scorer.retrieval is None else list(scorer.retrieval.units),
            "n_rows": len(self.held_out_scores_),
            "history": self.history_,
        }
        write_bundle(folder, content, tensors)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model; the same machine gives the same scores, bit for bit."""
        content, tensors = read_bundle(folder)
        config = Config(**content["config"])
        model = cls(**content["parameters"], config=config, device=device)
        schema = Schema.from_json(content["schema"])
        target = resolve_device(device)
        network = Network([torch.Generator()] * content["n_members"], schema.n_encoded, config)
        prefix = "network."
        network.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        columns = Columns(schema.missing_rate, schema.groups)
        scorer = Scorer(
            network=network.to(target),
            reference_rows=tensors["reference_rows"].to(target),
            missing_rate=torch.from_numpy(columns.missing_rate).to(target),
            column_weight=torch.from_numpy(columns.indicator_weight(config)).to(target),
            space=Space(tensors["space.centre"], tensors["space.unit"], tensors.get("space.pass_of")),
            network_factor=content["network_factor"],
            retrieval=(
                make_retrieval(tensors["bank"].to(target), config, content["retrieval_units"])
                if "bank" in tensors
                else None
            ),
        )
        calibration = Calibration(tensors["calibration"].numpy()) if "calibration" in tensors else None
        model.n_features_in_ = content["n_features_in"]
        if content["feature_names_in"] is not None:
            model.feature_names_in_ = np.asarray(content["feature_names_in"], dtype=object)
        unknown = np.full(content["n_rows"], np.nan)  # the bundle keeps the scores, not whose they are
        model._adopt(schema, config, Fitted(scorer, calibration, content["history"], unknown))
        return model


def resolve_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(f"The 'device' parameter of PTAD names {name!r}, which cannot be used: {reason}") from error
    return device
