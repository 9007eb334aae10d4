"""Models from files: read or sample the rows, fit, update or recalibrate, save, say what was done."""

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
from ptad.jobs.bad_cell_list import bad_cell_list, check_list
from ptad.jobs.batches import known_names
from ptad.jobs.sampling import Progress, Sample, training_rows
from ptad.jobs.training_table import TrainingTable
from ptad.paper.settings import NetworkSettings
from ptad.sklearn_detector import check_parameters
from ptad.storage import MANIFEST
from ptad.tables import BadCells, BadCellsWarning, Schema
from ptad.tables.places import Places, located
from ptad.tables.reading import as_source

logger = logging.getLogger("ptad")

Learn = Callable[[PTAD, pa.Table, Path | None], PTAD]
CHECKPOINT = "network.safetensors"  # the one file of a training run
Reading = Callable[[], AbstractContextManager[Progress | None]]


def fit_table(
    source: Any,
    out: str | os.PathLike[str],
    parameters: Mapping[str, Any],
    *,
    label: str | None = None,
    checkpoint: Path | None = None,
    bad_cells: Path | None = None,
    reading: Reading = nullcontext,
    learn: Learn | None = None,
    **rows: Any,
) -> dict[str, Any]:
    """Fit a model on the (normal) rows of a table, save it as a folder, and return a summary as plain JSON.

    ``parameters`` are those of :class:`ptad.PTAD`. The checkpoint, if any, is removed once the model is saved.
    ``bad_cells`` is a CSV file that lists the cells that could not be read and count as missing. ``label`` and ``rows``
    (``normal``, ``max_rows`` and ``encoding``) are those of :func:`ptad.jobs.sampling.training_rows`. ``reading`` opens
    the display of the rows read, which is closed before training shows its own. ``learn`` takes an unfitted detector,
    the rows and the checkpoint, and returns a fitted one: it is for terms that are trained, and without such a term, as
    without ``learn``, the model is fitted on this machine.
    """
    target = Path(out)
    check_target(target)
    detector = checked_detector(parameters)
    source = replace(as_source(source), decimal=detector.decimal, thousands=detector.thousands)
    seed = detector.random_state if isinstance(detector.random_state, int) else 0
    sample = _read(source, reading, bad_cells, label=label, seed=seed, missing=tuple(detector.missing), **rows)
    if label is not None:  # it is no feature: it is dropped, so that tables that carry it are scored without a word
        only = None if detector.only is None else tuple(name for name in detector.only if name != label)
        detector.set_params(drop=(*detector.drop, label), only=only)
    if learn is not None and not is_trained(detector):
        logger.warning("the preset %r has nothing to train on a cluster: fitting on this machine", detector.preset)
        learn = None
    with _located(sample.places):
        if learn is None:
            detector.fit(sample.table, checkpoint=checkpoint)
        else:
            detector = learn(detector, sample.table, checkpoint)
    if label is not None:
        detector.schema_.excluded[label] = "label column"
    found = _saved(detector, detector.schema_, target, sample, sample.table, bad_cells)
    if checkpoint is not None:
        _remove_checkpoint(checkpoint)
    return found


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
    reading: Reading = nullcontext,
    **rows: Any,
) -> dict[str, Any]:
    """Let a saved model take in the (normal) rows of a table, or take its threshold from them; save it.

    Parameters
    ----------
    change : "update" or "recalibrate"
        The method of :class:`ptad.PTAD`.
    model, out : path
        The model, and where it is saved: another folder, or the same one, which is replaced as a whole once the new
        one is complete.
    source
        The table, as for :func:`ptad.tables.scan_table`.
    false_alarm_rate : float or "auto", optional
        The target rate from now on.
    missing : sequence of str
        Text that counts as missing beside that of the model.
    strict, device, verbose
        As in :class:`ptad.PTAD`.
    label, bad_cells, reading, **rows
        As in :func:`fit_table`.

    Returns
    -------
    dict
        A summary, as of :func:`fit_table`.
    """
    target = Path(out)
    check_target(target)
    detector = PTAD.load(model, device=device)
    detector.set_params(verbose=verbose, strict=strict)
    if false_alarm_rate is not None:
        # the rate that is wanted of the new rows: the old calibration rows may be too few for it
        wanted: Any = false_alarm_rate
        detector.set_params(false_alarm_rate=wanted)
        check_parameters(detector)
        detector.false_alarm_rate_ = wanted
    wish, own = as_source(source), detector.schema_
    detector.schema_ = own.with_signs(wish.decimal, wish.thousands)
    known = detector.schema_.with_missing(missing)
    sample = _read(source, reading, bad_cells, label=label, missing=known.missing, schema=known, **rows)
    table = sample.table
    if label is not None and label not in own.names:
        table = table.drop_columns([label])  # it has done its work: no word about an unknown column
    table = table.select(known_names(detector, table.column_names))
    with _located(sample.places):
        seen = TrainingTable(detector.detector_.reference)
        seen.add(detector.schema_.encode(table, BadCells(strict=strict)))
        if seen.is_it:
            raise DataError(
                f"The model was fitted on these rows, or on a part of them: a threshold from rows that it knows would "
                f"be too low. To {change} it, give rows that it was not fitted on."
            )
        getattr(detector, change)(table)
    return _saved(detector, own, target, sample, table, bad_cells)  # other signs are those of these rows


def _read(source: Any, reading: Reading, bad_cells: Path | None, **options: Any) -> Sample:
    """Read the training rows while their number is shown; a list that would take their place is refused."""
    with reading() as progress:
        sample = training_rows(source, progress=progress, **options)
    check_list(bad_cells, sample.places)
    return sample


@contextmanager
def _located(places: Places) -> Iterator[None]:
    """Errors inside name the rows of the files; what cannot be read is listed and summed up, not warned of."""
    with located(places), warnings.catch_warnings():
        warnings.simplefilter("ignore", BadCellsWarning)
        yield


def is_trained(detector: PTAD) -> bool:
    """Whether a term of the detector is trained step by step, which is what a cluster can share."""
    return any(isinstance(term, NetworkSettings) for term in make_config(detector.preset, detector.config).terms)


def _saved(
    detector: PTAD, schema: Schema, target: Path, sample: Sample, table: pa.Table, bad_cells: Path | None
) -> dict[str, Any]:
    """List the cells that could not be read, save the model with this schema, and return what came of it."""
    bad = detector.schema_.bad_cells(table)
    with bad_cell_list(bad_cells, sample.places) as listed:
        listed.add(bad, places=sample.places)
    detector.schema_ = schema
    detector.save(target)
    calibration = detector.detector_.calibration
    return {
        "model": str(target),
        "rows_read": sample.rows_read,
        "rows_normal": sample.rows_normal,
        "training_rows": sample.table.num_rows,
        "sampled": sample.is_partial,
        "columns_used": len(schema.names),
        "columns_by_type": dict(Counter(schema.types.values()).most_common()),
        "columns_dated": [name for name, type_ in schema.types.items() if type_ in ("datetime", "date")],
        "features": len(schema.features),
        "excluded": dict(schema.excluded),
        "notes": [note.to_json() for note in schema.notes],
        "bad_cells": sum(bad.counts.values()),
        "columns_with_bad_cells": bad.counts,
        "reference_rows": len(detector.detector_.reference),
        "calibration_rows": 0 if calibration is None else len(calibration.scores),
        "false_alarm_rate": None if calibration is None else detector.false_alarm_rate_,
        "threshold": None if calibration is None else -detector.offset_,
    }


def checked_detector(parameters: Mapping[str, Any]) -> PTAD:
    """Return an unfitted detector; a wrong parameter is refused before any row is read."""
    known = sorted(PTAD().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise SettingError(f"There is no parameter {unknown[0]!r}. Known parameters: {', '.join(known)}.")
    detector = PTAD(**parameters)
    check_parameters(detector)
    resolve_device(detector.device)
    return detector


def check_target(target: Path) -> None:
    """Raise now, not after the fit, if the model cannot be saved there."""
    if target.exists() and not (target / MANIFEST).is_file():
        raise BundleError(f"'{target}' exists and is not a ptad model: it is left alone. Name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise BundleError(f"The model cannot be written to '{target}': {reason}. Name a writable folder.") from error


def _remove_checkpoint(folder: Path) -> None:
    """Only what a fit writes there: the user may have named a folder with other things in it."""
    for place in (*folder.glob("final"), *folder.glob("fold-*"), folder):
        for left in (place / CHECKPOINT, *place.glob(f".{CHECKPOINT}.*.part")):  # and what a kill has left of it
            left.unlink(missing_ok=True)
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
