"""What a saved model is made of, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptad.config import PRESETS
from ptad.estimator import PTAD
from ptad.storage import read_bundle


def describe_model(folder: str | Path) -> dict[str, Any]:
    """Return settings, columns, promise, sizes and versions of a model folder."""
    manifest, _ = read_bundle(folder)
    model = PTAD.load(folder, device="cpu")
    calibration, scorer, config = model.calibration_, model.scorer_, model.config_.to_json()
    return {
        "model": str(folder),
        "ptad_version": manifest["ptad_version"],
        "format_version": manifest["format_version"],
        "preset": model.preset,
        "context": model.context,
        "rows_learned": manifest.get("n_rows"),
        "columns": [_column(entry) for entry in manifest["schema"]["columns"]],
        "columns_encoded": model.schema_.n_encoded,
        "left_out": dict(model.schema_.left_out),
        "missing": list(model.schema_.missing),
        "false_alarm_rate": model.false_alarm_rate_ if calibration is not None else None,
        "threshold": -model.offset_ if calibration is not None else None,
        "smallest_rate": calibration.smallest_rate if calibration is not None else None,
        "calibration_rows": len(calibration.scores) if calibration is not None else 0,
        "reference_rows": int(scorer.reference_rows.shape[1]),
        "members": scorer.network.n_members,
        "parameters": sum(p.numel() for p in scorer.network.parameters()),
        "bytes": sum(f.stat().st_size for f in Path(folder).iterdir() if f.is_file()),
        "changed_settings": _changed(config, PRESETS[model.preset].to_json()),
        "config": config,
    }


def _column(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("name", "kind", "missing_rate")}


def _changed(config: dict[str, Any], preset: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if preset[name] != value}
