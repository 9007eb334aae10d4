"""Judging a whole table for the page: what the report says of it, and a file with the scores, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.engines.local import added_schema, load_model, rows_per_batch
from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.report.content import ReportSettings, make_content
from ptad.report.survey import Label, Survey
from ptad.service.store import write_json
from ptad.tables import TableWriter, scan_table

CONTENT, SCORED = "content.json", "scored.parquet"


class ScoringSurvey(Survey):
    """A survey that remembers the scores of the last batch, so that they need not be computed twice."""

    last_scores: NDArray[np.float64]

    def _keep_top(self, rows: pa.RecordBatch, scores: NDArray[np.float64], anomalous: NDArray[np.bool_]) -> None:
        self.last_scores = scores
        super()._keep_top(rows, scores, anomalous)


def judge_table(folder: Path, task: dict[str, Any], progress: Callable[[int, int | None], None]) -> dict[str, Any]:
    """Judge a table; leave what the page shows and the scored rows in the folder, and return a summary."""
    model = load_model(task["bundle"], device=task["device"], false_alarm_rate=task["false_alarm_rate"])
    if model.calibration_ is None:
        model.set_false_alarm_rate("auto")  # refuses with the reason
    settings = ReportSettings(top=task["top"], label=task["label"], normal=tuple(task["normal"]))
    label = None if settings.label is None else Label(settings.label, settings.normal)
    survey = ScoringSurvey(model, settings.top, label)
    scan = scan_table(
        task["source"], batch_rows=min(rows_per_batch(model), 2048), schema=model.schema_, missing=model.schema_.missing
    )
    prefix = "ptad_" if set(added_schema(0).names) & set(scan.schema.names) else ""
    added = added_schema(0, prefix)
    clash = set(added.names) & set(scan.schema.names)
    if clash:
        raise DataError(f"The table already has a column {sorted(clash)[0]!r}. Rename it.")
    schema = pa.schema([*scan.schema, *added])
    for left_over in folder.glob(f".{SCORED}.*"):  # of a worker that was killed
        left_over.unlink()
    with TableWriter(folder / SCORED, schema) as writer:
        for batch in scan:
            survey.add_all([batch])
            found = _judged(model, survey.last_scores)
            writer.write(pa.RecordBatch.from_arrays([*batch.columns, *found], schema=schema))
            progress(survey.n_rows, scan.n_rows)
    if label is not None and not survey.normal.counts.sum():
        raise DataError(f"No row is normal by the label column {label.column!r}. Name the value of normal rows.")
    content = make_content(survey, settings, task["source_name"], task["model_name"])
    write_json(folder / CONTENT, content)
    return {"rows": survey.n_rows, "strange": survey.n_strange, "false_alarm_rate": float(model.false_alarm_rate_)}


def _judged(model: PTAD, scores: NDArray[np.float64]) -> list[pa.Array]:
    assert model.calibration_ is not None
    return [pa.array(scores), pa.array(model.calibration_.p_value(scores)), pa.array(scores > -model.offset_)]
