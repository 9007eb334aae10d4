"""Metrics of a model on labelled rows: ranking, flagged rows, and the observed false-alarm rate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.arrays import Mask, Matrix
from ptad.jobs.batches import JobOptions, TableJob, operating_point
from ptad.jobs.labels import check_label, check_named, is_anomaly
from ptad.jobs.scored_batch import CellCounts
from ptad.jobs.training_table import TrainingTable

logger = logging.getLogger("ptad")


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a model on labelled rows; None where they are not defined."""

    rows: int
    normal_rows: int
    anomalies: int
    prevalence: float  # share of anomalies: the AUC-PR of random scores
    auc_roc: float | None
    auc_pr: float | None
    flagged: int
    found: int  # flagged rows that are anomalies
    false_alarms: int  # flagged rows that are normal
    precision: float | None
    recall: float | None
    target_false_alarm_rate: float  # of the calibration
    observed_false_alarm_rate: float | None  # share of normal rows that are flagged
    false_alarm_interval: tuple[float, float] | None  # exact (Clopper-Pearson) 95 % interval of the observed rate
    training_table: bool = False  # whether the model was fitted on some of these rows: the metrics are then too good
    bad_cells: int = 0  # cells that could not be read and count as missing
    columns_with_bad_cells: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain types."""
        return asdict(self)


def compare(scores: Matrix, anomaly: Mask, threshold: float, target: float) -> Evaluation:
    """Compare scores with labels; a row is flagged when its score is above the threshold."""
    from scipy.stats import binomtest
    from sklearn.metrics import average_precision_score, roc_auc_score

    flagged = scores > threshold
    n, n_anomalies = len(scores), int(anomaly.sum())
    n_normal, n_flagged = n - n_anomalies, int(flagged.sum())
    n_found, n_false = int((flagged & anomaly).sum()), int((flagged & ~anomaly).sum())
    has_both = bool(n_anomalies and n_normal)
    interval = None
    if n_normal:
        exact = binomtest(n_false, n_normal).proportion_ci()  # 95 %, by Clopper and Pearson
        interval = float(exact.low), float(exact.high)
    return Evaluation(
        rows=n,
        normal_rows=n_normal,
        anomalies=n_anomalies,
        prevalence=n_anomalies / n,
        auc_roc=float(roc_auc_score(anomaly, scores)) if has_both else None,
        auc_pr=float(average_precision_score(anomaly, scores)) if has_both else None,
        flagged=n_flagged,
        found=n_found,
        false_alarms=n_false,
        precision=n_found / n_flagged if n_flagged else None,
        recall=n_found / n_anomalies if n_anomalies else None,
        target_false_alarm_rate=target,
        observed_false_alarm_rate=n_false / n_normal if n_normal else None,
        false_alarm_interval=interval,
    )


def evaluate_table(
    model_folder: str | Path,
    source: Any,
    *,
    label: str,
    normal: Sequence[str] = (),
    anomaly: Sequence[str] = (),
    **options: Any,
) -> Evaluation:
    """Score a labelled table batch by batch and compare scores with labels; only scores and labels are kept in memory.

    Without ``normal`` and ``anomaly``, the label must be 0/1 or false/true, with 1 and true for anomalies. The options
    are those of :class:`ptad.jobs.batches.JobOptions`.
    """
    job = TableJob(model_folder, source, JobOptions(**options), label=label)
    model, point = job.model, operating_point(job.model)
    check_label(label, job.scan.schema.names, job.scan.label)
    scores, truth, labels = [], [], []
    training, cells = TrainingTable(model.detector_.reference), CellCounts.none(model.schema_)
    for _, batch, scored in job.scored():
        truth.append(is_anomaly(batch.column(label), normal, anomaly, label))
        labels.append(pc.unique(batch.column(label)))
        scores.append(scored.columns["score"].to_numpy())
        training.add(scored.encoded)
        cells += scored.cells
    for message in cells.unreadable_columns(model.schema_):
        logger.warning(message)
    values = pa.chunked_array(labels).combine_chunks()
    check_named(values, normal, label, "normal")
    check_named(values, anomaly, label, "anomaly")
    return replace(
        compare(np.concatenate(scores), np.concatenate(truth), *point),
        training_table=training.detected,
        bad_cells=int(cells.bad.sum()),
        columns_with_bad_cells=cells.bad_columns,
    )
