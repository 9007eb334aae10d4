"""Scoring on a cluster with Ray Data: one model per worker, one output part per unit of rows, resumable.

Only the description of a unit travels through the cluster. A worker reads its rows, scores them as the local engine
does, and writes the part under its final name in one step. A part that is there is not made again: a worker or a
machine that dies costs the units under way, and a job that is started again goes on where it stopped.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ptad.errors import DataError, Message, SettingError, UserError
from ptad.files import OutputLock, write_errors, write_json
from ptad.jobs.bad_cell_list import bad_cell_list, check_list
from ptad.jobs.batches import is_read_again, model_for
from ptad.jobs.ray.connection import connected, worker_share
from ptad.jobs.ray.plan import Unit, make_units, parquet_files, read_unit
from ptad.jobs.score import ScoreJob, ScoreOptions, ScoreSummary
from ptad.jobs.scored_batch import CELLS, CellCounts, ScoredBatch, bad_cells_in, score_batch
from ptad.model import Model
from ptad.tables import TableWriter
from ptad.tables.places import Places, RowError

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

    Parameters
    ----------
    out : path
        A folder; it holds ``part-*.parquet``, and the file ``_SUCCESS`` once all of them are there.
    address, workers
        The cluster, and how many workers score at a time; see :func:`ptad.jobs.ray.connection.connected`.
    **options
        Those of :class:`ptad.jobs.score.ScoreOptions`.
    """
    chosen = ScoreOptions(**options)
    if not is_read_again(source):
        raise SettingError("A cluster reads files that all machines see. Write the rows to a Parquet file first.")
    plan = ScoreJob(model_folder, source, chosen, device="cpu")
    model, scan, folder = plan.model, plan.scan, Path(out).resolve()
    check_list(chosen.bad_cells, scan.places)
    with _only_writer(folder):
        # parts hold whole rows; workers may have other devices than the driver
        _open_folder(folder, plan.belongs_to() | {"columns": plan.schema.names, "device": None})
        job = {
            "model": Path(model_folder).resolve(),
            "options": replace(chosen, progress=None),
            "wish": plan.wish,
            "own": scan.schema,
            "known": plan.known_names,
            "schema": plan.schema,
            "out": folder,
        }
        anomalies = resumed = 0
        cells = CellCounts.none(model.schema_)
        units = make_units(list(parquet_files(scan, folder / COPIES)), plan.step)
        with connected(address, workers) as ray:
            for row in _run(ray, units, job, *worker_share(ray, workers, chosen.device)):
                if row["error"]:
                    raise _raised(json.loads(row["error"]), scan.places)
                cells += CellCounts.from_bytes(row["cells"], model.schema_)
                anomalies += row["anomalies"]
                resumed += row["resumed"]
                if chosen.progress is not None:
                    chosen.progress(cells.rows, scan.n_rows)
        for found in scan.sources:
            found.check_unchanged()
        with bad_cell_list(chosen.bad_cells, scan.places) as listed:
            for unit in units if chosen.bad_cells is not None else ():
                listed.add(bad_cells_in(pq.read_schema(folder / unit.part).metadata), unit.start)
        shutil.rmtree(folder / COPIES, ignore_errors=True)
        for left_over in folder.glob(".part-*.part"):  # of workers that died while they wrote
            left_over.unlink(missing_ok=True)
        (folder / DONE).touch()
        return ScoreSummary.of(model, cells, anomalies, resumed, out, training_table=False)


def _sent(error: UserError, start: int) -> list[Any]:
    """An error of a worker whose rows begin at ``start``, as plain types: the row that it is about, if any, first."""
    if isinstance(error, RowError):
        before, row, after, *_ = error.args
        return [[before, start + row, after], error.message.to_json()]
    return [None, error.message.to_json()]


def _raised(words: list[Any], places: Places) -> DataError:
    """The error that a worker has sent, for a reader who finds the rows at these places."""
    place, message = words[0], Message.from_json(words[1])
    if place is None:
        return DataError(message.problem, message.remedy, message.options, message.otherwise)
    before, row, after = place
    return RowError(before, row, after, message.remedy, message.options, places)


def _only_writer(folder: Path) -> OutputLock:
    """One job at a time fills the folder; on other machines too, where the drive has locks."""
    with write_errors(folder, DataError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        return OutputLock(folder)


def _open_folder(folder: Path, belongs_to: dict[str, Any]) -> None:
    """Make the folder, or see that it holds parts of the very same job."""
    journal = folder / JOURNAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if journal.exists():
            if json.loads(journal.read_bytes()) != json.loads(json.dumps(belongs_to)):
                raise SettingError(
                    f"{folder} holds results of another model, table or setting. Name another folder, or delete it."
                )
        elif any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty. Name a new folder for the parts.")
        else:
            write_json(journal, belongs_to)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise DataError(f"{folder} cannot be used: {error}. Name a folder that all machines can write to.") from error


def _run(ray: Any, units: list[Unit], job: dict[str, Any], workers: int, gpus: float) -> Any:
    """Yield one row of figures per unit, in the order in which they are finished."""
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
        # one is enough to go on with: a machine that has gone must not stop the others
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
        return model_for(self.job["wish"], self.job["model"], self.options)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Score one unit; a user error comes back as its words, since running it again would not help."""
        start, rows = int(batch["start"][0]), int(batch["rows"][0])
        unit = Unit(start, rows, tuple((p, f, n) for p, f, n in json.loads(str(batch["slices"][0]))))
        resumed, anomalies, cells, error = 0, 0, b"", ""
        try:
            path = self.job["out"] / unit.part
            if path.exists():
                found = pq.read_table(path, columns=[f"{self.options.prefix}anomaly"], partitioning=None)
                resumed, anomalies = rows, pc.sum(found.column(0)).as_py() or 0
                cells = found.schema.metadata[CELLS]
            else:
                scored = self._score(unit, path)
                anomalies, cells = scored.anomalies, scored.cells.to_bytes()
        except UserError as mistake:
            error = json.dumps(_sent(mistake, unit.start))
        return {"anomalies": [anomalies], "resumed": [resumed], "cells": [cells], "error": [error]}

    def _score(self, unit: Unit, path: Path) -> ScoredBatch:
        batch = read_unit(unit.slices, self.job["own"])
        known, options = batch.select(self.job["known"]), self.options
        scored = score_batch(self.model, known, options.explain, strict=options.strict)
        own = batch.columns if options.append else []
        schema = self.job["schema"].with_metadata({**(self.job["schema"].metadata or {}), **scored.notes()})
        with TableWriter(path, schema) as writer:
            writer.write(pa.RecordBatch.from_arrays([*own, *scored.columns.values()], schema=schema))
        return scored
