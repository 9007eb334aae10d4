"""Scoring a whole table for the page: what the report says of it, and a file with the scores, in one pass.

What the model says of a batch is kept until the end, as the local engine keeps its scores: a worker that was killed
goes on where it stood. The scored file gets its name as the last act, so where it is, everything is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptad._version import __version__
from ptad.devices import resolve_device
from ptad.errors import DataError, UserError
from ptad.files import read_json, write_json
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.batches import JobOptions, load_model, rows_per_batch
from ptad.jobs.reasons import why_columns
from ptad.jobs.resume import PartStore
from ptad.jobs.score import added_schema
from ptad.jobs.scored_batch import decisions
from ptad.model import Model
from ptad.report.content import ReportSettings, make_content
from ptad.report.cross_fit import CrossFit, RowScorer
from ptad.report.survey import BatchScores, Label, Survey
from ptad.service.jobs.progress import ProgressFile
from ptad.tables import BadCells, TableScan, TableSource, TableWriter, scan_table
from ptad.tables.places import located

CONTENT, SCORED, BAD_CELLS = "content.json", "scored.parquet", "bad_cells.csv"
PARTS, LOCK = f".{SCORED}.partial", f".{SCORED}.lock"  # where the engine keeps what is done so far
MOST_ROWS = 2048  # in a batch: progress is seen, and little is lost by a kill
PREFIX = "ptad_"  # where the table itself has a column of the same name as an added one
N_SCORES = len(added_schema(0))  # score, p-value and flag
N_REASONS = 3  # columns that are named for every flagged row
IN_SAMPLE = (
    "The model was fitted on rows of this table: their scores are lower than those of new rows, and fewer of them are "
    "flagged. Look at new rows to see how good the model is."
)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def score_upload(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Score a table; leave what the page shows and the scored rows in the folder, and return a summary.

    Parameters
    ----------
    folder : Path
        The folder of the job.
    task : dict
        What the service wrote for the worker.
    progress : ProgressFile
        Told of every batch, and if an earlier run had got somewhere.
    """
    if (folder / SCORED).exists():  # killed after the last act
        (folder / LOCK).unlink(missing_ok=True)  # of the process that was killed
        return _summary(read_json(folder / CONTENT))
    options = JobOptions(
        device=task["device"], false_alarm_rate=task["false_alarm_rate"], missing=task.get("missing", ())
    )
    model = load_model(task["bundle"], TableSource(task["source"]), options)
    if model.detector_.calibration is None:
        model.set_false_alarm_rate("auto")  # refuses with the reason
    settings = ReportSettings(top=task["top"], label=task["label"], normal=tuple(task["normal"]))
    label = None if settings.label is None else Label(settings.label, settings.normal)
    # rows that are scored together depend on their batch: those batches stay as the command line has them
    rows = rows_per_batch(model) if model.detector_.batch_size else min(rows_per_batch(model), MOST_ROWS)
    scan = _scan(task, model, rows)
    schema = _output_schema(scan)
    store = PartStore(folder / SCORED, _belongs_to(task, model, scan, rows))
    scores: list[np.ndarray] = []
    try:
        with (
            TableWriter(store.staging, schema) as writer,
            bad_cell_list(folder / BAD_CELLS, scan.places) as listed,
        ):
            survey = Survey(
                model,
                settings.top,
                label,
                _scorer(task, model, _scan(task, model, rows)),
                strict=task.get("strict", False),
                places=scan.places,
                listed=listed,
            )
            for batch, found, why in _scored(survey, scan, store, progress):
                survey.count_in(batch, found)
                columns = [*decisions(model, found.scores).values(), *why]
                scores.append(found.scores)
                writer.write(pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema))
                progress.stage("scoring", survey.n_rows, scan.n_rows or 0, "rows")
            if label is not None and not survey.normal.counts.sum():
                raise DataError(
                    f"No row is normal by the label column {label.column!r}. Name the value of normal rows."
                )
        known = isinstance(survey.scorer, CrossFit) or survey.training.detected  # the report says it by itself
        notes = [IN_SAMPLE] if task["training_table"] and not known else []
        content = make_content(survey, settings, task["source_name"], task["model_name"], notes)
        content["training_table"] = task["training_table"] or survey.training.detected
        content["quantiles"] = dict(zip(map(str, QUANTILES), _quantiles(scores), strict=True))
    except UserError:
        store.discard()  # the table or the wish has to change: nothing of this will be asked for again
        raise
    except BaseException:
        store.close()  # what is done stays, for the next worker
        raise
    write_json(folder / CONTENT, content)
    store.finish()
    return _summary(content)


def _scored(
    survey: Survey, scan: TableScan, store: PartStore, progress: ProgressFile
) -> Iterator[tuple[pa.RecordBatch, BatchScores, list[pa.Array]]]:
    """Yield every batch with its scores and reasons, from the store where an earlier run has left them there."""
    start = resumed = 0
    for batch in scan:
        kept = store.get(start, batch.num_rows)
        if kept is None:
            if resumed:
                progress.note(f"It goes on after the {resumed:,} rows that were scored before.")
                resumed = 0
            found = survey.score(batch, start)
            kept = _with_reasons(survey, batch, found, start)
            store.put(start, kept)
        else:
            resumed += batch.num_rows
        yield batch, BatchScores.from_batch(kept), kept.columns[1:]
        start += batch.num_rows


def _with_reasons(survey: Survey, batch: pa.RecordBatch, found: BatchScores, start: int) -> pa.RecordBatch:
    """What is kept of a batch: scores, and for every flagged row the columns that contribute most."""
    kept = found.to_batch()
    flagged = np.flatnonzero(found.scores > survey.threshold)
    fields = list(added_schema(N_REASONS))[N_SCORES:]
    columns = {field.name: pa.nulls(batch.num_rows, field.type) for field in fields}
    if len(flagged):
        explanation = survey.scorer.explain(survey.known(batch).take(pa.array(flagged)), start + flagged)
        places = np.full(batch.num_rows, -1)
        places[flagged] = np.arange(len(flagged))
        taken = pa.array(places, mask=places < 0)
        columns = {name: column.take(taken) for name, column in why_columns(explanation, N_REASONS).items()}
    schema = pa.schema([*kept.schema, *fields], metadata=kept.schema.metadata)
    return pa.RecordBatch.from_arrays([*kept.columns, *(columns[field.name] for field in fields)], schema=schema)


def _scan(task: dict[str, Any], model: Model, rows: int) -> TableScan:
    """Open the table; it is read once."""
    return scan_table(TableSource(task["source"], label=task["source_name"]), batch_rows=rows, schema=model.schema_)


def _scorer(task: dict[str, Any], model: Model, scan: TableScan) -> RowScorer:
    """Return what scores the table: the model, or for the table that it was fitted on detectors without the rows."""
    if task["fitted_on"] is None:
        return RowScorer(model)
    column, normal = task["fitted_on"]["label"], tuple(task["fitted_on"]["normal"])
    label = None if column is None else Label(column, normal)
    reader = Survey(model, 1, label)

    def training_rows() -> Iterator[tuple[Any, Any]]:
        start = 0
        for batch in scan:
            normal_rows = np.ones(batch.num_rows, bool) if label is None else ~label.anomalous(batch)
            own = np.flatnonzero(normal_rows)
            with located(scan.places.after(start)):
                model.schema_.encode(reader.known(batch), BadCells(strict=task.get("strict", False)))
            yield reader.known(batch).take(pa.array(own)), start + own
            start += batch.num_rows

    return CrossFit.fit(model, training_rows())


def _output_schema(scan: TableScan) -> pa.Schema:
    """The table's own columns and the added ones, under names that are free."""
    own = set(scan.schema.names)
    choices = [added_schema(N_REASONS, prefix) for prefix in ("", PREFIX)]
    added = next((names for names in choices if not own & set(names.names)), None)
    if added is None:
        clash = sorted(own & set(choices[-1].names))[0]
        raise DataError(f"The table already has a column {clash!r}. Rename it.")
    return pa.schema([*scan.schema, *added])


def _belongs_to(task: dict[str, Any], model: Model, scan: TableScan, rows: int) -> dict[str, Any]:
    """Everything that scores depend on; what was kept for anything else is deleted."""
    return {
        "ptad": __version__,
        "model": model.digest,
        "device": resolve_device(task["device"]),
        "false_alarm_rate": float(model.false_alarm_rate_),
        "label": task["label"],
        "fitted_on": task["fitted_on"],
        "missing": list(model.schema_.missing),
        "strict": task.get("strict", False),
        "batch_rows": rows,
        "reasons": N_REASONS,
        "sources": [list(source.state) for source in scan.sources],
    }


def _quantiles(scores: list[np.ndarray]) -> list[float]:
    return [float(f"{value:.6g}") for value in np.quantile(np.concatenate(scores), QUANTILES)] if scores else []


def _summary(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": content["n_rows"],
        "flagged": content["n_flagged"],
        "false_alarm_rate": content["rate"],
        "threshold": content["scores"]["threshold"],
        "quantiles": content["quantiles"],
        "held_out": content["held_out"],
        "training_table": content["training_table"],
        "rows_with_missing_values": content["missing"]["rows"],
        "rows_with_unseen_categories": content["unseen"]["rows"],
        "bad_cells": content["bad"]["cells"],
        "columns_with_bad_cells": dict(content["bad"]["columns"]),
    }
