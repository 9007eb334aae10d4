"""Scoring a whole table in one pass: the content of its report, and a file with the scores.

The scores of every batch are kept until the end, as :mod:`ptad.jobs.resume` keeps them: the worker after one that was
killed resumes from there. The scored file gets its name last: if it exists, everything else does.
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
from ptad.jobs.score import added_schema, output_schema
from ptad.jobs.scored_batch import decisions
from ptad.model import Model
from ptad.report.content import ReportSettings, make_content
from ptad.report.cross_fit import CrossFit, RowScorer
from ptad.report.survey import BatchScores, Label, Survey
from ptad.service.jobs.progress import ProgressFile
from ptad.tables import BadCells, TableScan, TableSource, TableWriter, scan_table
from ptad.tables.places import located

CONTENT, SCORED, BAD_CELLS = "content.json", "scored.parquet", "bad_cells.csv"
PARTS, LOCK = f".{SCORED}.partial", f".{SCORED}.lock"  # the batches that are done, and the lock of the output
MOST_ROWS = 2048  # of a batch, so that progress is seen, and little is lost by a kill
PREFIX = "ptad_"  # of the added columns, if the table itself has one of their names
N_SCORES = len(added_schema(0))  # score, p-value and flag
N_REASONS = 3  # columns named for every flagged row
IN_SAMPLE = (
    "The model was fitted on rows of this table: their scores are lower than those of new rows, and fewer of them are "
    "flagged. Look at new rows to see how good the model is."
)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def score_upload(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Score a table, write the content of the report and the scored rows to the job's folder, and return a summary.

    ``task`` is what the service wrote for the worker; ``progress`` records every batch, and where the job resumes.
    """
    if (folder / SCORED).exists():  # the worker before was killed after all was done
        (folder / LOCK).unlink(missing_ok=True)
        return _summary(read_json(folder / CONTENT))
    options = JobOptions(
        device=task["device"], false_alarm_rate=task["false_alarm_rate"], missing=task.get("missing", ())
    )
    model = load_model(task["bundle"], TableSource(task["source"]), options)
    if model.detector_.calibration is None:
        model.set_false_alarm_rate("auto")  # raises the error with the reason
    settings = ReportSettings(top=task["top"], label=task["label"], normal=tuple(task["normal"]))
    label = None if settings.label is None else Label(settings.label, settings.normal)
    # where scores depend on the batch, batches are those of the command line
    rows = rows_per_batch(model) if model.detector_.batch_size else min(rows_per_batch(model), MOST_ROWS)
    scan = _scan(task, model, rows)
    schema = _output_schema(scan)
    store = PartStore(folder / SCORED, _fingerprint(task, model, scan, rows))
    scores: list[np.ndarray] = []
    try:
        with TableWriter(store.staging, schema) as writer, bad_cell_list(folder / BAD_CELLS, scan.places) as listed:
            survey = Survey(
                model,
                settings.top,
                label,
                _scorer(task, model, _scan(task, model, rows)),
                strict=task.get("strict", False),
                places=scan.places,
                listed=listed,
            )
            for batch, batch_scores, reasons in _score_batches(survey, scan, store, progress):
                survey.count_in(batch, batch_scores)
                columns = [*decisions(model, batch_scores.scores).values(), *reasons]
                scores.append(batch_scores.scores)
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
        quantiles = np.quantile(np.concatenate(scores), QUANTILES)
        content["quantiles"] = {str(q): float(f"{value:.6g}") for q, value in zip(QUANTILES, quantiles, strict=True)}
    except UserError:
        store.discard()  # the table or the request has to change: these scores will not be used again
        raise
    except BaseException:
        store.close()  # the next worker resumes from the batches that are done
        raise
    write_json(folder / CONTENT, content)
    store.finish()
    return _summary(content)


def _score_batches(
    survey: Survey, scan: TableScan, store: PartStore, progress: ProgressFile
) -> Iterator[tuple[pa.RecordBatch, BatchScores, list[pa.Array]]]:
    """Yield every batch with its scores and reasons, which are in the store if an earlier attempt has computed them."""
    start = resumed = 0
    for batch in scan:
        stored = store.get(start, batch.num_rows)
        if stored is None:
            if resumed:
                progress.note(f"Scoring resumes after {resumed:,} rows.")
                resumed = 0
            stored = _with_reasons(survey, batch, survey.score(batch, start), start)
            store.put(start, stored)
        else:
            resumed += batch.num_rows
        yield batch, BatchScores.from_batch(stored), stored.columns[1:]
        start += batch.num_rows


def _with_reasons(survey: Survey, batch: pa.RecordBatch, scores: BatchScores, start: int) -> pa.RecordBatch:
    """Return what the store keeps of a batch: scores, and for flagged rows the columns that contribute most."""
    scored = scores.to_batch()
    flagged = np.flatnonzero(scores.scores > survey.threshold)
    fields = list(added_schema(N_REASONS))[N_SCORES:]
    columns = {field.name: pa.nulls(batch.num_rows, field.type) for field in fields}
    if len(flagged):
        explanation = survey.scorer.explain(survey.model_columns(batch).take(pa.array(flagged)), start + flagged)
        positions = np.full(batch.num_rows, -1)
        positions[flagged] = np.arange(len(flagged))
        indices = pa.array(positions, mask=positions < 0)  # null for rows that are not flagged
        columns = {name: column.take(indices) for name, column in why_columns(explanation, N_REASONS).items()}
    schema = pa.schema([*scored.schema, *fields], metadata=scored.schema.metadata)
    return pa.RecordBatch.from_arrays([*scored.columns, *(columns[field.name] for field in fields)], schema=schema)


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
            is_normal = np.ones(batch.num_rows, bool) if label is None else ~label.anomalous(batch)
            rows = np.flatnonzero(is_normal)
            with located(scan.places.after(start)):
                model.schema_.encode(reader.model_columns(batch), BadCells(strict=task.get("strict", False)))
            yield reader.model_columns(batch).take(pa.array(rows)), start + rows
            start += batch.num_rows

    return CrossFit.fit(model, training_rows())


def _output_schema(scan: TableScan) -> pa.Schema:
    """Return the columns of the table and the added ones, with a prefix if the table has columns of their names."""
    try:
        return output_schema(scan.label, scan.schema, added_schema(N_REASONS))
    except DataError:
        return output_schema(scan.label, scan.schema, added_schema(N_REASONS, PREFIX))


def _fingerprint(task: dict[str, Any], model: Model, scan: TableScan, rows: int) -> dict[str, Any]:
    """Return everything that scores depend on; batches that were stored for anything else are deleted."""
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
