"""Scoring on a cluster with Ray Data: one model per worker, one output part per unit of rows, resumable.

Only the description of a unit travels through the cluster. A worker reads its rows, scores them as the local engine
does, and writes the part under its final name in one step. A part that exists is not computed again: when a worker or a
machine dies, only the units in progress are lost, and a job that is started again resumes.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ptad.errors import DataError, Message, SettingError, UserError
from ptad.files import OutputLock, write_errors, write_json
from ptad.jobs.bad_cell_list import bad_cell_list, check_list
from ptad.jobs.batches import constant_warnings, is_repeatable, load_model
from ptad.jobs.ray.connection import connected, worker_share
from ptad.jobs.ray.plan import Unit, make_units, parquet_files, read_unit
from ptad.jobs.score import ScoreJob, ScoreOptions, ScoreSummary
from ptad.jobs.scored_batch import CELLS, CellCounts, ScoredBatch, bad_cells_in, score_batch
from ptad.jobs.training_table import TrainingTable
from ptad.model import Model
from ptad.tables import TableWriter
from ptad.tables.places import Places, RowError

logger = logging.getLogger("ptad")

JOURNAL, DONE, COPIES = "_ptad.json", "_SUCCESS", "_rows"
_MOST_TASKS = 4096


def score_on_cluster(
    model_folder: str | Path,
    source: Any,
    out: str | Path,
    *,
    address: str | None = None,
    workers: int | None = None,
    **options: Any,
) -> ScoreSummary:
    """Score a table of files into a folder of Parquet parts; the rows are those of the local engine, in its order.

    The folder holds ``part-*.parquet``, and the file ``_SUCCESS`` once all of them are there. At most ``workers`` score
    at a time. The options are those of :class:`ptad.jobs.score.ScoreOptions`.
    """
    score_options = ScoreOptions(**options)
    if not is_repeatable(source):
        raise SettingError("A cluster reads files that all machines see. Write the rows to a Parquet file first.")
    plan = ScoreJob(model_folder, source, replace(score_options, device="cpu"))
    model, scan, folder = plan.model, plan.scan, Path(out).resolve()
    check_list(score_options.bad_cells, scan.places)
    with write_errors(folder, DataError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = OutputLock(folder)  # one job at a time, on all machines if the file system supports locks
    with lock:
        # the columns of the table are part of the output; workers may have other devices than the driver
        _open_folder(folder, plan.fingerprint() | {"columns": plan.schema.names, "device": None})
        job = {
            "model": Path(model_folder).resolve(),
            "options": replace(score_options, progress=None),
            "source": plan.source,
            "table_schema": scan.schema,
            "known_names": plan.known_names,
            "schema": plan.schema,
            "out": folder,
        }
        anomalies = resumed = 0
        cells, training = CellCounts.none(model.schema_), TrainingTable(model.detector_.reference)
        constants: dict[str, Message] = {}  # warnings about columns that were constant in training
        units = make_units(list(parquet_files(scan, folder / COPIES)), plan.batch_rows)
        with connected(address, workers) as ray:
            for row in _run(units, job, *worker_share(ray, workers, score_options.device)):
                if row["error"]:
                    raise _error_from_json(json.loads(row["error"]), scan.places)
                cells += CellCounts.from_bytes(row["cells"], model.schema_)
                anomalies += row["anomalies"]
                training.add_matches(np.frombuffer(row["matches"], dtype=np.int64))
                for name, content in json.loads(row["constants"]).items():
                    if name not in constants:
                        constants[name] = Message.from_json(content)
                        logger.warning(constants[name])
                resumed += row["resumed"]
                if score_options.progress is not None:
                    score_options.progress(cells.rows, scan.n_rows)
        for file in scan.sources:
            file.check_unchanged()
        with bad_cell_list(score_options.bad_cells, scan.places) as bad_cells:
            for unit in units if score_options.bad_cells is not None else ():
                bad_cells.add(bad_cells_in(pq.read_schema(folder / unit.part).metadata), unit.start)
        shutil.rmtree(folder / COPIES, ignore_errors=True)
        for partial in folder.glob(".part-*.part"):  # of workers that died while they wrote
            partial.unlink(missing_ok=True)
        (folder / DONE).touch()
        return ScoreSummary.of(model, cells, anomalies, resumed, out, training_table=training.detected)


def _error_to_json(error: UserError, start: int) -> list[Any]:
    """Return an error of a worker as plain types; its rows begin at ``start``, and a row that it names comes first."""
    if isinstance(error, RowError):
        before, row, after, *_ = error.args
        return [[before, start + row, after], error.message.to_json()]
    return [None, error.message.to_json()]


def _error_from_json(content: list[Any], places: Places) -> DataError:
    """Return the error of a worker; ``places`` are those of the rows of the table."""
    row_message, message = content[0], Message.from_json(content[1])
    if row_message is None:
        return DataError(*vars(message).values())
    before, row, after = row_message
    return RowError(before, row, after, message.remedy, message.options, places)


def _open_folder(folder: Path, fingerprint: dict[str, Any]) -> None:
    """Make the folder, or check that it holds parts of the same job."""
    journal = folder / JOURNAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if journal.exists():
            if json.loads(journal.read_bytes()) != json.loads(json.dumps(fingerprint)):
                raise SettingError(
                    f"{folder} holds results of another model, table or setting. Name another folder, or delete it."
                )
        elif any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty. Name a new folder for the parts.")
        else:
            write_json(journal, fingerprint)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise DataError(f"{folder} cannot be used: {error}. Name a folder that all machines can write to.") from error


def _run(units: list[Unit], job: dict[str, Any], workers: int, gpus: float) -> Any:
    """Yield the counts of every unit, in the order in which they are finished."""
    import ray.data as data

    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    for name in ("ray.data", "ray.data._internal.progress"):
        logging.getLogger(name).setLevel(logging.ERROR)
    items = [{"start": u.start, "rows": u.rows, "slices": json.dumps(u.slices)} for u in units]
    workers = min(workers, len(items))
    dataset = data.from_items(items, override_num_blocks=min(len(items), _MOST_TASKS)).map_batches(
        ScoringActor,
        fn_constructor_args=(job,),
        batch_size=1,
        # the job goes on with a single worker: a machine that was lost must not stop the others
        compute=data.ActorPoolStrategy(min_size=1, max_size=workers, initial_size=workers),
        num_cpus=1,
        num_gpus=gpus or None,
    )
    yield from dataset.iter_rows()


class ScoringActor:
    """Scores units in a process of the cluster; loads the model when the first unit needs it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.options = job, job["options"]

    @cached_property
    def model(self) -> Model:
        return load_model(self.job["model"], self.job["source"], self.options)

    @cached_property
    def training(self) -> TrainingTable:
        return TrainingTable(self.model.detector_.reference)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Score one unit; a user error is returned as JSON, since a second try would fail too."""
        start, rows = int(batch["start"][0]), int(batch["rows"][0])
        unit = Unit(start, rows, tuple((p, f, n) for p, f, n in json.loads(str(batch["slices"][0]))))
        resumed, anomalies, cells, error = 0, 0, b"", ""
        matches, constants = b"", "{}"  # unknown for parts of an earlier run
        try:
            path = self.job["out"] / unit.part
            if path.exists():
                flags = pq.read_table(path, columns=[f"{self.options.prefix}anomaly"], partitioning=None)
                resumed, anomalies = rows, pc.sum(flags.column(0)).as_py() or 0
                cells = flags.schema.metadata[CELLS]
            else:
                batch = read_unit(unit.slices, self.job["table_schema"])
                scored = self._score(batch, path)
                messages = constant_warnings(self.model.schema_, batch)
                constants = json.dumps({name: message.to_json() for name, message in messages.items()})
                matches = b"" if scored.encoded is None else self.training.matches(scored.encoded).tobytes()
                anomalies, cells = scored.anomalies, scored.cells.to_bytes()
        except UserError as user_error:
            error = json.dumps(_error_to_json(user_error, unit.start))
        return {
            "anomalies": [anomalies],
            "resumed": [resumed],
            "cells": [cells],
            "matches": [matches],
            "constants": [constants],
            "error": [error],
        }

    def _score(self, batch: pa.RecordBatch, path: Path) -> ScoredBatch:
        options = self.options
        scored = score_batch(self.model, batch.select(self.job["known_names"]), options.explain, strict=options.strict)
        table_columns = batch.columns if options.append else []
        schema = self.job["schema"].with_metadata({**(self.job["schema"].metadata or {}), **scored.metadata()})
        with TableWriter(path, schema) as writer:
            writer.write(pa.RecordBatch.from_arrays([*table_columns, *scored.columns.values()], schema=schema))
        return scored
