"""Models from files: read or sample the rows, fit, update or recalibrate, save, and return a summary."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ptad.config import make_config
from ptad.devices import resolve_device
from ptad.errors import BundleError, DataError, SettingError
from ptad.estimator import PTAD
from ptad.jobs import Progress
from ptad.jobs.bad_cell_list import bad_cell_list, check_list
from ptad.jobs.batches import known_columns, warn_of_ignored
from ptad.jobs.info import describe_fit
from ptad.jobs.sampling import Sample, training_rows
from ptad.jobs.training_table import TrainingTable
from ptad.paper.settings import NetworkSettings
from ptad.sklearn_detector import check_parameters
from ptad.storage import MANIFEST
from ptad.tables import BadCells, BadCellsWarning, Schema
from ptad.tables.exclusion import Exclusion
from ptad.tables.places import Places, located
from ptad.tables.reading import as_source

logger = logging.getLogger("ptad")

FitFunction = Callable[[PTAD, pa.Table, Path | None], PTAD]
CHECKPOINT = "network.safetensors"  # the only file of a checkpoint
ReadDisplay = Callable[[], AbstractContextManager[Progress | None]]


def fit_table(
    source: Any,
    out: str | os.PathLike[str],
    parameters: Mapping[str, Any],
    *,
    label: str | None = None,
    checkpoint: Path | None = None,
    bad_cells: Path | None = None,
    reading: ReadDisplay = nullcontext,
    fit_function: FitFunction | None = None,
    **rows: Any,
) -> dict[str, Any]:
    """Fit a model on the normal rows of a table, save it in the folder ``out``, and return a summary as plain JSON.

    ``parameters`` are those of :class:`ptad.PTAD`, ``rows`` those of :func:`ptad.jobs.sampling.training_rows`. An
    interrupted training resumes from the folder ``checkpoint``, which is removed once the model is saved. ``bad_cells``
    is a CSV file that lists the cells that could not be read. ``reading`` opens the display of the rows read, which is
    closed before training shows its own. ``fit_function`` fits elsewhere, where one of the terms is trained.
    """
    target = Path(out)
    check_target(target)
    detector = checked_detector(parameters)
    source = replace(as_source(source), decimal=detector.decimal, thousands=detector.thousands)
    seed = detector.random_state if isinstance(detector.random_state, int) else 0
    sample = _read(source, reading, bad_cells, label=label, seed=seed, missing=tuple(detector.missing), **rows)
    if label is not None:  # it is not a feature; tables that have it are scored without a warning
        only = None if detector.only is None else tuple(name for name in detector.only if name != label)
        detector.set_params(drop=(*detector.drop, label), only=only)
    if fit_function is not None and not is_trained(detector):
        logger.warning("the preset %r has nothing to train on a cluster: fitting on this machine", detector.preset)
        fit_function = None
    with _located(sample.places):
        if fit_function is None:
            detector.fit(sample.table, checkpoint=checkpoint)
        else:
            detector = fit_function(detector, sample.table, checkpoint)
    if label is not None:
        detector.schema_.exclusions[label] = Exclusion("label")
    summary = _save(detector, detector.schema_, target, sample, sample.table, bad_cells)
    if checkpoint is not None:
        _remove_checkpoint(checkpoint)
    return summary


def renew_table(
    change: Literal["update", "recalibrate"],
    model: str | os.PathLike[str],
    source: Any,
    out: str | os.PathLike[str],
    *,
    label: str | None = None,
    false_alarm_rate: float | str | None = None,
    missing: Sequence[str] = (),
    strict: bool = False,
    bad_cells: Path | None = None,
    device: str = "auto",
    verbose: int = 1,
    reading: ReadDisplay = nullcontext,
    **rows: Any,
) -> dict[str, Any]:
    """Update a saved model with the normal rows of a table, or recalibrate it on them, save it and return a summary.

    ``change`` is the method of :class:`ptad.PTAD`. ``out`` may be the model itself, which is replaced when the new one
    is complete. ``false_alarm_rate`` is the target rate from now on, ``missing`` further text that counts as missing;
    the other parameters are those of :class:`ptad.PTAD` and of :func:`fit_table`.
    """
    target = Path(out)
    check_target(target)
    detector = PTAD.load(model, device=device)
    detector.set_params(verbose=verbose, strict=strict)
    if false_alarm_rate is not None:
        # without set_false_alarm_rate: the new rows may support a rate for which the old calibration rows are too few
        rate: Any = false_alarm_rate
        detector.set_params(false_alarm_rate=rate)
        check_parameters(detector)
        detector.false_alarm_rate_ = rate
    table_source, schema = as_source(source), detector.schema_
    detector.schema_ = schema.with_signs(table_source.decimal, table_source.thousands)
    reading_schema = detector.schema_.with_missing(missing)
    sample = _read(
        source, reading, bad_cells, label=label, missing=reading_schema.missing, schema=reading_schema, **rows
    )
    columns, ignored = known_columns(schema, sample.table.column_names, None if label in schema.names else label)
    warn_of_ignored(ignored)
    table = sample.table.select(columns)
    with _located(sample.places):
        training = TrainingTable(detector.detector_.reference)
        training.add(detector.schema_.encode(table, BadCells(strict=strict)))
        if training.detected or training.repeated:
            raise DataError(
                "The model was fitted on these rows, or on many of them: a threshold from training rows would be too "
                f"low. To {change} it, give only rows that it was not fitted on."
            )
        getattr(detector, change)(table)
    return _save(detector, schema, target, sample, table, bad_cells)  # without the signs, which are those of this table


def _read(source: Any, reading: ReadDisplay, bad_cells: Path | None, **options: Any) -> Sample:
    """Read the training rows and show how many; a list of bad cells that would replace the table is refused."""
    with reading() as progress:
        sample = training_rows(source, progress=progress, **options)
    check_list(bad_cells, sample.places)
    return sample


@contextmanager
def _located(places: Places) -> Iterator[None]:
    """Let errors name the rows of the files; without the warning about bad cells, which the summary counts."""
    with located(places), warnings.catch_warnings():
        warnings.simplefilter("ignore", BadCellsWarning)
        yield


def is_trained(detector: PTAD) -> bool:
    """Whether a term of the detector is trained in steps, which a cluster can share."""
    return any(isinstance(term, NetworkSettings) for term in make_config(detector.preset, detector.config).terms)


def _save(
    detector: PTAD, schema: Schema, target: Path, sample: Sample, table: pa.Table, bad_cells: Path | None
) -> dict[str, Any]:
    """List the cells that could not be read, save the model with this schema, and return the summary."""
    bad = detector.schema_.bad_cells(table)
    with bad_cell_list(bad_cells, sample.places) as bad_cell_file:
        bad_cell_file.add(bad, places=sample.places)
    detector.schema_ = schema
    detector.save(target)
    return {
        "model": str(target),
        "rows_read": sample.rows_read,
        "rows_normal": sample.rows_normal,
        "training_rows": sample.table.num_rows,
        "sampled": sample.is_partial,
        "columns_used": len(schema.names),
        "columns_by_type": dict(Counter(schema.types.values()).most_common()),
        "columns_dated": [name for name, type_ in schema.types.items() if type_ in ("datetime", "date")],
        "bad_cells": sum(bad.counts.values()),
        "columns_with_bad_cells": bad.counts,
        **describe_fit(detector),
    }


def checked_detector(parameters: Mapping[str, Any]) -> PTAD:
    """Return an unfitted detector; an invalid parameter is refused before any row is read."""
    known = sorted(PTAD().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise SettingError(f"There is no parameter {unknown[0]!r}. Known parameters: {', '.join(known)}.")
    detector = PTAD(**parameters)
    check_parameters(detector)
    resolve_device(detector.device)
    return detector


def check_target(target: Path) -> None:
    """Raise before the fit if the model cannot be saved there."""
    if target.exists() and not (target / MANIFEST).is_file():
        raise BundleError(f"'{target}' exists, but is not a ptad model and is not replaced. Name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise BundleError(f"The model cannot be written to '{target}': {reason}. Name a writable folder.") from error


def _remove_checkpoint(folder: Path) -> None:
    """Remove the files that a fit writes there, also partial ones; the user's folder may have other files in it."""
    for part in (*folder.glob("final"), *folder.glob("fold-*"), folder):
        for file in (part / CHECKPOINT, *part.glob(f".{CHECKPOINT}.*.part")):
            file.unlink(missing_ok=True)
        if part.is_dir() and not any(part.iterdir()):
            part.rmdir()
