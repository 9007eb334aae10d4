"""What a saved model is made of, as plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptad.config import PRESETS, Config
from ptad.model import Model


def describe_model(folder: str | Path) -> dict[str, Any]:
    """Return terms, settings, columns, false-alarm rate, sizes and versions of a model folder."""
    model = Model.load(folder, device="cpu")
    manifest, detector, config = model.manifest, model.detector_, model.config_
    calibration = detector.calibration
    return {
        "model": str(folder),
        "ptad_version": manifest["ptad_version"],
        "format_version": manifest["format_version"],
        "preset": model.preset,
        "terms": [{"name": term.title(), "weight": term.weight} for term in config.terms],
        "batch_size": detector.batch_size,
        "training_rows": manifest.get("n_rows"),
        "columns": [
            {
                name: entry[name]
                for name in ("name", "type", "missing_rate", "formats", "decimal", "thousands")
                if name in entry
            }
            for entry in manifest["schema"]["columns"]
        ],
        "features": len(model.schema_.features),
        "excluded": dict(model.schema_.excluded),
        "missing": list(model.schema_.missing),
        "notes": [note.to_json() for note in model.schema_.notes],
        "false_alarm_rate": None if calibration is None else model.false_alarm_rate_,
        "threshold": None if calibration is None else -model.offset_,
        "smallest_rate": None if calibration is None else calibration.smallest_rate,
        "calibration_rows": 0 if calibration is None else len(calibration.scores),
        "reference_rows": len(detector.reference),
        "bytes": sum(f.stat().st_size for f in Path(folder).iterdir() if f.is_file()),
        "changed_settings": _changed(config, PRESETS[model.preset]),
        "config": config.to_json(),
    }


def _changed(config: Config, preset: Config) -> dict[str, Any]:
    """Settings that differ from the preset, by dotted name."""
    known = preset.by_name()
    return {name: value for name, value in config.by_name().items() if name not in known or known[name] != value}
