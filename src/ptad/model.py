"""A saved model, ready to score: ``ptad.PTAD`` without scikit-learn, whose import takes longer than a small job."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ptad.calibration import Calibration, Units
from ptad.config import Config
from ptad.detector import Detector, Pipeline
from ptad.devices import resolve_device
from ptad.errors import BundleError
from ptad.reference import Reference
from ptad.storage import read_bundle, write_bundle
from ptad.table_model import TableModel
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


@dataclass(repr=False)
class Model(TableModel):
    """A saved model that scores and explains, without scikit-learn; :meth:`load` makes it.

    The names and scores are those of :class:`ptad.PTAD`.

    Parameters
    ----------
    content : dict
        The manifest of the bundle.
    schema_ : Schema
        How the table becomes a matrix.
    detector_ : Detector
        The fitted terms and their calibration, over encoded rows.
    false_alarm_rate_ : float
        The target rate in force; NaN without calibration.
    offset_ : float
        The negated threshold; NaN without calibration.
    """

    content: dict[str, Any]
    schema_: Schema
    detector_: Detector
    false_alarm_rate_: float = float("nan")
    offset_: float = float("nan")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model.

        Parameters
        ----------
        folder : path
            Where :meth:`ptad.PTAD.save` or ``ptad fit`` wrote it.
        device : str
            "auto", "cpu", "cuda", ...; as in :class:`ptad.PTAD`.

        Returns
        -------
        Model
            With the threshold that it was saved with.
        """
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

    def __post_init__(self) -> None:
        self.preset = str(self.content["parameters"]["preset"])
        self.config_ = self.detector_.config
        self.history_ = self.content["history"]

    def __repr__(self) -> str:
        from ptad.report.notebook import model_text

        return model_text(self)


def save_model(
    folder: str | os.PathLike[str], schema: Schema, detector: Detector, false_alarm_rate: float | None, **more: Any
) -> None:
    """Write a model so that :meth:`Model.load` reads it back; ``more`` are the other entries of the manifest."""
    arrays = {"reference": detector.reference, "units": np.stack([detector.units.mean, detector.units.spread])}
    for settings, term in zip(detector.config.terms, detector.pipeline.terms, strict=True):
        arrays |= {f"{settings.title()}.{key}": value for key, value in term.state().items()}
    if detector.calibration is not None:
        arrays["calibration"] = detector.calibration.scores
    content = {
        "config": detector.config.to_json(),
        "schema": schema.to_json(),
        "false_alarm_rate": false_alarm_rate,
        "n_rows": len(detector.held_out_scores),
        **more,
    }
    write_bundle(folder, content, arrays)
