"""The description of a saved model, as plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptad.config import PRESETS
from ptad.model import Model

_COLUMN_FIELDS = ("name", "type", "missing_rate", "formats", "decimal", "thousands")


def describe_fit(model: Model) -> dict[str, Any]:
    """Return columns, rows and threshold of a fitted model, as plain JSON."""
    schema, detector = model.schema_, model.detector_
    calibration = detector.calibration
    return {
        "features": len(schema.features),
        "excluded": schema.excluded,
        "notes": [note.to_json() for note in schema.notes],
        "reference_rows": len(detector.reference),
        "calibration_rows": 0 if calibration is None else len(calibration.scores),
        "false_alarm_rate": None if calibration is None else model.false_alarm_rate_,
        "threshold": None if calibration is None else -model.offset_,
    }


def describe_model(folder: str | Path) -> dict[str, Any]:
    """Return terms, settings, columns, false-alarm rate, sizes and versions of a model folder."""
    model = Model.load(folder, device="cpu")
    manifest, config, calibration = model.manifest, model.config_, model.detector_.calibration
    defaults = PRESETS[model.preset].by_name()
    return {
        "model": str(folder),
        "ptad_version": manifest["ptad_version"],
        "format_version": manifest["format_version"],
        "preset": model.preset,
        "terms": [{"name": term.title(), "weight": term.weight} for term in config.terms],
        "batch_size": model.detector_.batch_size,
        "training_rows": manifest.get("n_rows"),
        "columns": [
            {name: entry[name] for name in _COLUMN_FIELDS if name in entry} for entry in manifest["schema"]["columns"]
        ],
        **describe_fit(model),
        "missing": list(model.schema_.missing),
        "smallest_rate": None if calibration is None else calibration.smallest_rate,
        "bytes": sum(f.stat().st_size for f in Path(folder).iterdir() if f.is_file()),
        "changed_settings": {k: v for k, v in config.by_name().items() if k not in defaults or defaults[k] != v},
        "config": config.to_json(),
    }
