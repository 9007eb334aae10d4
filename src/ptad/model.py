"""A saved model, ready to score: ``ptad.PTAD`` without scikit-learn, whose import takes longer than a small job."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptad.calibration import Calibration, Units
from ptad.config import PRESETS, Config
from ptad.detector import Detector, Pipeline
from ptad.devices import resolve_device
from ptad.errors import BundleError, SettingError
from ptad.layout import (
    MOST_ROWS,
    AnyOf,
    Anything,
    ArrayLayout,
    Integer,
    ListOf,
    MappingOf,
    Null,
    Number,
    Record,
    Text,
    damaged,
    require,
)
from ptad.reference import Reference
from ptad.storage import FORMAT_VERSION, open_bundle, write_bundle
from ptad.table_model import TableModel
from ptad.tables import Schema
from ptad.tables.features import Features
from ptad.tables.number_format import DECIMALS, THOUSANDS
from ptad.tables.schema import check_version

_NAMES = ListOf(AnyOf((Integer(-(2**63), 2**63), Text())))  # columns of arrays are numbered
_RATE = Number(0.0, 1.0)
MANIFEST_LAYOUT = Record(
    {
        "format": Text(longest=64),
        "format_version": Integer(FORMAT_VERSION, FORMAT_VERSION),
        "ptad_version": Text(longest=100),
        "tensors_sha256": Text(longest=64),
        "parameters": Record(
            {
                "preset": Text(tuple(PRESETS)),
                "false_alarm_rate": AnyOf((Text(("auto",)), _RATE)),
                "types": AnyOf((Null(), MappingOf(Text()))),
                "missing": AnyOf((Text(), ListOf(AnyOf((Number(), Text()))))),
                "drop": AnyOf((Text(), _NAMES)),
                "only": AnyOf((Null(), Text(), _NAMES)),
                "decimal": AnyOf((Null(), Text(tuple(DECIMALS)))),
                "thousands": AnyOf((Null(), Text(tuple(THOUSANDS)))),
                "random_state": AnyOf((Null(), Integer(0, 2**32 - 1))),
            }
        ),
        "config": MappingOf(Anything()),
        "schema": MappingOf(Anything()),
        "n_features_in": Integer(1, 2**31),
        "feature_names_in": AnyOf((Null(), ListOf(Text()))),
        "false_alarm_rate": AnyOf((Null(), _RATE)),
        "n_rows": Integer(1, MOST_ROWS),
        "history": ListOf(MappingOf(Number())),
    }
)
MOST_UNIT = 1e30  # of a term's mean and spread: a score then stays finite in single precision
N_PROBES = 2  # reference rows that a model scores when it is loaded


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
    digest : str
        What tells this model from any other.
    false_alarm_rate_ : float
        The target rate in force; NaN without calibration.
    offset_ : float
        The negated threshold; NaN without calibration.
    """

    content: dict[str, Any]
    schema_: Schema
    detector_: Detector
    digest: str
    false_alarm_rate_: float = float("nan")
    offset_: float = float("nan")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "auto", label: str | None = None) -> Self:
        """Read a model.

        Parameters
        ----------
        folder : path
            Where :meth:`ptad.PTAD.save` or ``ptad fit`` wrote it.
        device : str
            "auto", "cpu", "cuda", ...; as in :class:`ptad.PTAD`.
        label : str, optional
            What errors call the model; by default its path.

        Returns
        -------
        Model
            With the threshold that it was saved with.
        """
        target = resolve_device(device)
        with open_bundle(folder, label) as bundle, np.errstate(all="ignore"):
            content = bundle.content
            if "schema" in content:
                check_version(content["schema"])  # a model of the past is not a damaged one
            MANIFEST_LAYOUT.check(content, "its manifest")
            config, schema = Config.from_json(content["config"]), Schema.from_json(content["schema"])
            names = content["feature_names_in"]
            if content["n_features_in"] != len(schema.inputs) or len(names or schema.inputs) != len(schema.inputs):
                raise damaged("its manifest.n_features_in", "the number of its columns")
            shapes = bundle.shapes()
            arrays = bundle.arrays(_layouts(config, schema.features, shapes))
            detector = _detector(config, schema.features, arrays, content["n_rows"], target)
        model = cls(content, schema, detector, bundle.digest)
        return model if detector.calibration is None else model._with_rate(content["false_alarm_rate"])

    def _with_rate(self, rate: Any) -> Self:
        try:
            return self.set_false_alarm_rate(rate)
        except (SettingError, TypeError) as error:
            wanted = "a rate that its calibration rows support"
            raise damaged("its manifest.false_alarm_rate", wanted) from error

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


def _layouts(config: Config, features: Features, shapes: dict[str, tuple[int, ...]]) -> dict[str, ArrayLayout]:
    """Return what the arrays of a bundle have to be; ``shapes`` say how many reference rows there are."""
    n_features, n_terms = len(features), len(config.terms)
    n_reference = shapes["reference"][0] if len(shapes.get("reference", ())) == 2 else 1
    found = {
        "reference": ArrayLayout("float64", ((1, config.reference.rows), n_features), gaps=True),
        "units": ArrayLayout("float64", (2, n_terms), low=-MOST_UNIT, high=MOST_UNIT),
    }
    if "calibration" in shapes:
        limit = float(np.finfo(np.float32).max)
        found["calibration"] = ArrayLayout("float64", ((1, MOST_ROWS),), low=-limit, high=limit)
    for settings in config.terms:
        own = settings.term().layouts(features, settings, n_reference)
        found |= {f"{settings.title()}.{name}": layout for name, layout in own.items()}
    return found


def _detector(
    config: Config, features: Features, arrays: dict[str, NDArray[Any]], n_rows: int, device: str
) -> Detector:
    """Put a detector together from arrays that are as their layouts say, and see that it works."""
    rows = arrays["reference"]
    codes = rows[:, features.categories]
    known = (codes >= 0) & (codes <= features.n_categories[features.categories]) & (codes == np.floor(codes))
    require((known | np.isnan(codes)).all(), "reference", "holds categories that the schema does not know")
    reference = Reference(rows, features, config.reference, device)
    terms = []
    for settings in config.terms:
        prefix = f"{settings.title()}."
        state = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        terms.append(settings.term().from_state(state, reference, settings))
    mean, spread = arrays["units"]
    require((spread >= 0.5 * Units.LEAST).all(), "units", "has a spread that is none")
    units = Units(mean, spread, np.array([term.standardised for term in terms]))
    calibration = Calibration(arrays["calibration"]) if "calibration" in arrays else None
    # the bundle keeps the scores, not whose they are; so many NaN take no memory here
    unknown = np.broadcast_to(np.nan, (n_rows,))
    detector = Detector(config, features, Pipeline(reference, terms), units, calibration, unknown)
    if not np.isfinite(detector.scores(rows[:N_PROBES])).all():
        raise BundleError("The model is damaged: its scores are not finite. Restore it or fit again.")
    return detector
