"""A saved model, ready to score: ``ptad.PTAD`` without scikit-learn, whose import takes longer than a small job."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptad.calibration import Calibration, Units
from ptad.config import Config
from ptad.detector import Detector, Pipeline
from ptad.devices import resolve_device
from ptad.errors import BundleError, SettingError
from ptad.explanation import Explanation, make_explanation
from ptad.reference import Reference
from ptad.storage import read_bundle
from ptad.tables import Schema

SAVED_ENTRIES = (
    "parameters",
    "config",
    "schema",
    "n_features_in",
    "feature_names_in",
    "false_alarm_rate",
    "n_rows",
    "history",
)


@dataclass
class Model:
    """What a bundle holds. The names are those of :class:`ptad.PTAD`, and so are the scores.

    Attributes
    ----------
    content : dict
        The manifest of the bundle.
    schema_, detector_, false_alarm_rate_, offset_
        As in :class:`ptad.PTAD`; the rate and the offset are NaN without calibration.
    """

    content: dict[str, Any]
    schema_: Schema
    detector_: Detector
    false_alarm_rate_: float = float("nan")
    offset_: float = float("nan")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model."""
        content, arrays = read_bundle(folder)
        for entry in SAVED_ENTRIES:
            if entry not in content:
                raise BundleError(f"'{folder}' is damaged: its manifest has no '{entry}'. Restore it or fit again.")
        config, schema = Config.from_json(content["config"]), Schema.from_json(content["schema"])
        target = resolve_device(device)
        try:
            reference = Reference(arrays["reference"], schema.features, config.reference, target)
            terms = []
            for settings in config.terms:
                prefix = f"{settings.title()}."
                state = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
                terms.append(settings.term().from_state(state, reference, schema.features, settings, target))
            mean, spread = arrays["units"]
            units = Units(mean, spread, np.array([term.standardised for term in terms]))
        except KeyError as error:
            raise BundleError(f"'{folder}' is damaged: it has no array {error}. Restore it or fit again.") from error
        calibration = Calibration(arrays["calibration"]) if "calibration" in arrays else None
        unknown = np.full(content["n_rows"], np.nan)  # the bundle keeps the scores, not whose they are
        pipeline = Pipeline(reference, terms)
        model = cls(content, schema, Detector(config, schema.features, pipeline, units, calibration, unknown))
        return model if calibration is None else model.set_false_alarm_rate(content["false_alarm_rate"])

    @property
    def preset(self) -> str:
        return str(self.content["parameters"]["preset"])

    @property
    def config_(self) -> Config:
        return self.detector_.config

    def set_false_alarm_rate(self, rate: float | str) -> Self:
        """Change the threshold."""
        calibration = self.detector_.calibration
        if calibration is None:
            raise SettingError(
                "This model has no threshold: it was fitted without calibration. Recalibrate it with normal rows that "
                "it was not fitted on, or fit it with calibration.method=auto."
            )
        self.false_alarm_rate_ = calibration.rate(rate)
        self.offset_ = -calibration.threshold(self.false_alarm_rate_)
        return self

    def anomaly_score(self, table: Any) -> NDArray[np.float64]:
        """Return the anomaly score of every row: higher is more anomalous."""
        return self.detector_.scores(self.schema_.encode(table))

    def explain(self, table: Any) -> Explanation:
        """Return for every row and column what it adds to the score, why, what was observed and what was expected."""
        return make_explanation(table, self.schema_, self.detector_)
