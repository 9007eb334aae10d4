"""Learning a model from files and saving it: read or sample the rows, fit, save, say what was done."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptad.engines.local import known_names
from ptad.engines.sampling import MAX_ROWS, Progress, Sample, training_rows
from ptad.errors import BundleError, SettingError
from ptad.estimator import PTAD
from ptad.storage import MANIFEST

Learn = Callable[[PTAD, pa.Table, Path | None], PTAD]


def fit_table(
    source: Any,
    out: str | os.PathLike[str],
    parameters: Mapping[str, Any],
    *,
    label: str | None = None,
    normal: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
    encoding: str = "utf-8",
    checkpoint: Path | None = None,
    reading: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
    learn: Learn | None = None,
) -> dict[str, Any]:
    """Fit a model on the (normal) rows of a table, save it as a folder, and return a summary as plain JSON.

    ``parameters`` are those of :class:`ptad.PTAD`. The checkpoint, if any, is removed once the model is saved.
    ``reading`` opens the display of the rows read, which is closed before training shows its own. ``learn`` takes an
    unfitted detector, the rows and the checkpoint, and returns a fitted one: without it, ``fit`` on this machine.
    """
    target = Path(out)
    check_target(target)
    detector = checked_detector(parameters)
    seed = detector.random_state if isinstance(detector.random_state, int) else 0
    with reading() as progress:
        sample = training_rows(
            source,
            label=label,
            normal=normal,
            max_rows=max_rows,
            seed=seed,
            missing=tuple(detector.missing),
            encoding=encoding,
            progress=progress,
        )
    if label is not None:
        detector.set_params(**_without_label(detector, label))
    detector = (learn or _fit)(detector, sample.table, checkpoint)
    detector.save(target)
    if checkpoint is not None:
        _remove_checkpoint(checkpoint)
    return _summary(detector, target, sample)


def update_table(
    model: str | os.PathLike[str],
    source: Any,
    out: str | os.PathLike[str],
    *,
    label: str | None = None,
    normal: Sequence[str] = (),
    n_steps: int | None = None,
    false_alarm_rate: float | str | None = None,
    max_rows: int = MAX_ROWS,
    encoding: str = "utf-8",
    device: str = "auto",
    verbose: int = 1,
    reading: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
) -> dict[str, Any]:
    """Let a saved model go on learning from the (normal) rows of a table, save it, and return a summary.

    ``out`` may be the folder of the model itself, which is replaced as a whole once the new one is complete.
    """
    target = Path(out)
    check_target(target)
    detector = PTAD.load(model, device=device)
    detector.set_params(verbose=verbose)
    if false_alarm_rate is not None:
        detector.set_params(false_alarm_rate=false_alarm_rate)
    with reading() as progress:
        sample = training_rows(
            source,
            label=label,
            normal=normal,
            max_rows=max_rows,
            seed=0,
            missing=detector.schema_.missing,
            encoding=encoding,
            progress=progress,
        )
    table = sample.table
    if label is not None and label not in detector.schema_.names:
        table = table.drop_columns([label])  # it has done its work: no word about an unknown column
    table = table.select(known_names(detector, table.column_names))
    detector.update(table, n_steps=n_steps).save(target)
    return _summary(detector, target, sample)


def _summary(detector: PTAD, target: Path, sample: Sample) -> dict[str, Any]:
    """What was read, learned and promised, as plain JSON."""
    schema = detector.schema_
    calibrated = detector.calibration_ is not None
    return {
        "model": str(target),
        "rows_read": sample.rows_read,
        "rows_normal": sample.rows_normal,
        "rows_learned": sample.table.num_rows,
        "sampled": sample.is_partial,
        "columns_used": len(schema.names),
        "columns_by_kind": dict(Counter(schema.kinds.values()).most_common()),
        "columns_dated": [name for name, kind in schema.kinds.items() if kind in ("datetime", "date")],
        "columns_encoded": schema.n_encoded,
        "left_out": dict(schema.left_out),
        "calibration_rows": len(detector.calibration_.scores) if detector.calibration_ is not None else 0,
        "false_alarm_rate": detector.false_alarm_rate_ if calibrated else None,
        "threshold": -detector.offset_ if calibrated else None,
    }


def _fit(detector: PTAD, rows: pa.Table, checkpoint: Path | None) -> PTAD:
    return detector.fit(rows, checkpoint=checkpoint)


def checked_detector(parameters: Mapping[str, Any]) -> PTAD:
    """Return an unfitted detector; a wrong parameter is the user's mistake before any row is read."""
    from ptad.config import make_config
    from ptad.estimator import resolve_device

    known = sorted(PTAD().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise SettingError(f"There is no setting {unknown[0]!r}. Known settings are: {', '.join(known)}.")
    detector = PTAD(**parameters)
    try:
        detector._validate_params()
        make_config(detector.preset, detector.config)
    except (ValueError, TypeError) as error:  # scikit-learn's wording, which names parameter, range and value
        raise SettingError(str(error)) from error
    resolve_device(detector.device)
    return detector


def check_target(target: Path) -> None:
    """Raise now, not after an hour of training, if the model cannot be saved there."""
    if target.exists() and not (target / MANIFEST).is_file():
        raise BundleError(f"'{target}' exists and is not a ptad model: it is left alone. Name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise BundleError(f"The model cannot be written to '{target}': {reason}. Name a writable folder.") from error


def _without_label(detector: PTAD, label: str) -> dict[str, Any]:
    """The label is no feature: it is dropped, so that tables that carry it are scored without a word."""
    only = detector.only
    return {
        "drop": (*detector.drop, label),
        "only": None if only is None else tuple(name for name in only if name != label),
    }


def _remove_checkpoint(folder: Path) -> None:
    """Only what a fit writes there: the user may have named a folder with other things in it."""
    for file in folder.glob("members-*.safetensors"):
        file.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
