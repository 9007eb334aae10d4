"""A fitted model as a folder: the layouts of its manifest and arrays, writing and reading."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.calibration import Calibration, Units
from ptad.config import PRESETS, Config
from ptad.detector import Detector, Pipeline
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
from ptad.reference import Reference, max_reference_rows
from ptad.storage import FORMAT_VERSION, open_bundle, write_bundle
from ptad.tables import Schema
from ptad.tables.features import Features
from ptad.tables.number_format import DECIMALS, THOUSANDS
from ptad.tables.schema import check_version

_COLUMNS = ListOf(AnyOf((Integer(-(2**63), 2**63), Text())))  # columns of arrays are numbered
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
                "drop": AnyOf((Text(), _COLUMNS)),
                "only": AnyOf((Null(), Text(), _COLUMNS)),
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
MAX_UNIT = 1e30  # of a term's mean and spread: a score then stays finite in single precision
N_PROBES = 2  # reference rows that a model scores when it is read


@dataclass(frozen=True)
class SavedModel:
    """The content of a model folder."""

    manifest: dict[str, Any]
    schema: Schema
    detector: Detector
    digest: str  # SHA-256 of the manifest: two folders with the same one hold the same model


def read_model(folder: str | os.PathLike[str], device: str, label: str | None = None) -> SavedModel:
    """Read and check a folder that :func:`save_model` wrote; errors name it by ``label`` or by its path."""
    with open_bundle(folder, label) as bundle, np.errstate(all="ignore"):
        manifest = bundle.content
        if "schema" in manifest:
            check_version(manifest["schema"])  # a model of an older version is not a damaged one
        MANIFEST_LAYOUT.check(manifest, "its manifest")
        config, schema = Config.from_json(manifest["config"]), Schema.from_json(manifest["schema"])
        names = manifest["feature_names_in"]
        if manifest["n_features_in"] != len(schema.inputs) or len(names or schema.inputs) != len(schema.inputs):
            raise damaged("its manifest.n_features_in", "the number of its columns")
        arrays = bundle.arrays(_layouts(config, schema.features, bundle.shapes()))
        detector = _make_detector(config, schema.features, arrays, manifest["n_rows"], device)
        if detector.calibration is not None:
            try:
                detector.calibration.rate(manifest["false_alarm_rate"])
            except (SettingError, TypeError) as error:
                place = "its manifest.false_alarm_rate"
                raise damaged(place, "a rate that its calibration rows support") from error
    return SavedModel(manifest, schema, detector, bundle.digest)


def save_model(
    folder: str | os.PathLike[str], schema: Schema, detector: Detector, false_alarm_rate: float | None, **more: Any
) -> None:
    """Write a model so that :func:`read_model` reads it back; ``more`` are the other entries of the manifest."""
    arrays = {"reference": detector.reference, "units": np.stack([detector.units.mean, detector.units.spread])}
    for settings, term in zip(detector.config.terms, detector.pipeline.terms, strict=True):
        arrays |= {f"{settings.title()}.{key}": value for key, value in term.state().items()}
    if detector.calibration is not None:
        arrays["calibration"] = detector.calibration.scores
    manifest = {
        "config": detector.config.to_json(),
        "schema": schema.to_json(),
        "false_alarm_rate": false_alarm_rate,
        "n_rows": len(detector.held_out_scores),
        **more,
    }
    write_bundle(folder, manifest, arrays)


def _layouts(config: Config, features: Features, shapes: dict[str, tuple[int, ...]]) -> dict[str, ArrayLayout]:
    """Return the layouts of the arrays of a bundle; the number of reference rows follows from their ``shapes``."""
    n_reference = shapes["reference"][0] if len(shapes.get("reference", ())) == 2 else 1
    max_rows = min(config.reference.rows, max_reference_rows(features, BundleError))
    layouts = {
        "reference": ArrayLayout("float64", ((1, max_rows), len(features)), allow_nan=True),
        "units": ArrayLayout("float64", (2, len(config.terms)), low=-MAX_UNIT, high=MAX_UNIT),
    }
    if "calibration" in shapes:
        limit = float(np.finfo(np.float32).max)
        layouts["calibration"] = ArrayLayout("float64", ((1, MOST_ROWS),), low=-limit, high=limit)
    for settings in config.terms:
        term_layouts = settings.term().layouts(features, settings, n_reference)
        layouts |= {f"{settings.title()}.{name}": layout for name, layout in term_layouts.items()}
    return layouts


def _make_detector(
    config: Config, features: Features, arrays: dict[str, NDArray[Any]], n_rows: int, device: str
) -> Detector:
    """Return the detector of arrays that match their layouts; check that its scores are finite."""
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
    require((spread >= 0.5 * Units.MIN_SPREAD).all(), "units", "has a spread below the minimum")
    units = Units(mean, spread, np.array([term.standardised for term in terms]))
    calibration = Calibration(arrays["calibration"]) if "calibration" in arrays else None
    # The bundle does not map calibration scores to training rows; NaN for every row, which take no memory here.
    held_out_scores = np.broadcast_to(np.nan, (n_rows,))
    detector = Detector(config, features, Pipeline(reference, terms), units, calibration, held_out_scores)
    detector.scores(rows[:N_PROBES])  # raises if they are not finite
    return detector
