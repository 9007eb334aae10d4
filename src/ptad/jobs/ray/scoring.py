"""Scoring on a cluster with Ray Data: one model per worker, one output part per unit of rows, resumable.

Only the description of a unit travels through the cluster. A worker reads its rows, scores them as the local engine
does, and writes the part under its final name in one step. A part that is there is not made again: a worker or a
machine that dies costs the units under way, and a job that is started again goes on where it stopped.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ptad.errors import DataError, SettingError, UserError
from ptad.files import OutputLock, refused, write_whole
from ptad.jobs.bad_cell_list import LIST, bad_cell_list, from_bytes
from ptad.jobs.batches import is_read_again, known_names, load_light
from ptad.jobs.ray.connection import connected, worker_share
from ptad.jobs.ray.plan import Unit, make_units, parquet_files, read_unit
from ptad.jobs.score import ScoreJob, ScoreOptions, ScoreSummary
from ptad.jobs.scored_batch import CELLS, CellCounts, score_batch
from ptad.messages import Message
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
    plan = ScoreJob(model_folder, source, chosen, "cpu")
    model, scan, folder = plan.model, plan.scan, Path(out).resolve()
    known_names(model, scan.schema.names)  # names the columns that are ignored, once
    with _only_writer(folder):
        # parts hold whole rows; workers may have other devices than the driver
        _open_folder(folder, plan.belongs_to() | {"columns": plan.schema.names, "device": None})
        job = {
            "model": str(Path(model_folder).resolve()),
            "device": chosen.device,
            "false_alarm_rate": chosen.false_alarm_rate,
            "missing": list(chosen.missing),
            "strict": chosen.strict,
            "explain": chosen.explain,
            "append": chosen.append,
            "out": str(folder),
            "own": scan.schema.serialize().to_pybytes(),
            "schema": plan.schema.serialize().to_pybytes(),
            "anomaly": f"{chosen.prefix}anomaly",
            "signs": [plan.wish.decimal, plan.wish.thousands],
        }
        anomalies = resumed = 0
        cells = CellCounts.none(model.schema_)
        units = make_units(parquet_files(scan, folder / COPIES, plan.step), plan.step)
        with connected(address, workers) as ray:
            for row in _run(ray, units, job, *worker_share(ray, workers, chosen.device)):
                if row["error"]:
                    raise _raised(json.loads(row["error"]), scan.places)
                cells += CellCounts.from_bytes(row["cells"], model.schema_)
                anomalies += row["anomalies"]
                resumed += row["rows"] if row["resumed"] else 0
                if chosen.progress is not None:
                    chosen.progress(cells.rows, scan.n_rows)
        for found in scan.sources:
            found.check_unchanged()
        with bad_cell_list(chosen.bad_cells, scan.places) as listed:
            for unit in units if chosen.bad_cells is not None else ():
                listed.add(from_bytes(pq.read_schema(folder / unit.part).metadata[LIST]), unit.start)
        shutil.rmtree(folder / COPIES, ignore_errors=True)
        for left_over in folder.glob(".part-*.part"):  # of workers that died while they wrote
            left_over.unlink(missing_ok=True)
        (folder / DONE).touch()
        for message in cells.unread(model.schema_):
            logger.warning(message)
        return ScoreSummary.of(model, cells, anomalies, resumed, str(out))


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
    with refused(folder, DataError):
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
            write_whole(journal, json.dumps(belongs_to, indent=1).encode())
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
        ClusterWorker,
        fn_constructor_args=(job,),
        batch_size=1,
        # one is enough to go on with: a machine that has gone must not stop the others
        compute=data.ActorPoolStrategy(min_size=1, max_size=workers, initial_size=workers),
        num_cpus=1,
        num_gpus=gpus or None,
    )
    yield from dataset.iter_rows()


class ClusterWorker:
    """Scores units in a process of the cluster; loads the model when the first unit needs it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.out = Path(job["out"])
        self.own = pa.ipc.read_schema(pa.py_buffer(job["own"]))
        self.schema = pa.ipc.read_schema(pa.py_buffer(job["schema"]))
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        if self._model is None:
            job = self.job
            self._model = load_light(
                job["model"], device=job["device"], false_alarm_rate=job["false_alarm_rate"], missing=job["missing"]
            )
            self._model.schema_ = self._model.schema_.with_signs(*job["signs"])
        return self._model

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Score one unit; a user error comes back as its words, since running it again would not help."""
        start, rows = int(batch["start"][0]), int(batch["rows"][0])
        unit = Unit(start, rows, tuple((p, f, n) for p, f, n in json.loads(str(batch["slices"][0]))))
        resumed, anomalies, cells, error = False, 0, b"", ""
        try:
            found = self._left(unit)
            resumed = found is not None
            flagged, cells = found or self._score(unit)
            anomalies = int(pc.sum(flagged.cast(pa.int64())).as_py() or 0)
        except UserError as mistake:
            error = json.dumps(_sent(mistake, unit.start))
        return {
            "start": [start],
            "rows": [rows],
            "anomalies": [np.int64(anomalies)],
            "resumed": [resumed],
            "cells": [cells],
            "error": [error],
        }

    def _left(self, unit: Unit) -> tuple[Any, bytes] | None:
        """Return flags and counts of a part that is there already, or None."""
        path = self.out / unit.part
        if not path.exists():
            return None
        found = pq.read_table(path, columns=[self.job["anomaly"]], partitioning=None)
        return found.column(0), found.schema.metadata[CELLS]

    def _score(self, unit: Unit) -> tuple[Any, bytes]:
        batch = read_unit(unit.slices, self.own)
        known = batch.select(known_names(self.model, batch.schema.names, say=False))
        scored = score_batch(self.model, known, self.job["explain"], strict=self.job["strict"])
        own = batch.columns if self.job["append"] else []
        notes = scored.notes()
        schema = self.schema.with_metadata({**(self.schema.metadata or {}), **notes})
        with TableWriter(self.out / unit.part, schema) as writer:
            writer.write(pa.RecordBatch.from_arrays([*own, *scored.columns.values()], schema=schema))
        return scored.columns["anomaly"], notes[CELLS]
