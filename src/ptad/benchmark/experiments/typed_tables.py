"""Real tables with text and missing values: does the promised rate hold, does the explanation find a planted error?

For each table: AUC-ROC beside that of one-hot columns and min-max kNN, the observed share of alarms among new normal
rows at three promised rates, and the planted-cell test of :mod:`ptad.benchmark.planted`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from ptad.benchmark.planted import planted_cells
from ptad.benchmark.runner import RunSettings
from ptad.benchmark.tables import Table, TableCell
from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.tables import fit_schema, read_table

RATES = (0.1, 0.01, 0.001)
N_PLANTED = 2_000
_COLUMNS = (
    "table", "n_train", "auc_roc", "auc_roc_knn", *(f"alarms_{rate}" for rate in RATES),
    "n_planted", "flagged", "first", "first_three",
)  # fmt: skip


@dataclass(frozen=True)
class TypedTable:
    """A table of the ``tables`` folder and what counts as normal in it."""

    name: str
    label: str
    anomaly: str | None = None
    normal: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def is_anomaly(self, table: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        values = np.array([str(value).strip() for value in table[self.label].to_pylist()])
        return np.asarray(values == self.anomaly if self.anomaly is not None else values != self.normal)


TABLES = (
    TypedTable("hypothyroid", "binaryClass", anomaly="N"),
    TypedTable("bank_additional_full", "y", anomaly="yes", missing=("unknown",)),
    TypedTable("adult", "income", anomaly=">50K", drop=("split",)),
    TypedTable("nsl_kdd", "attack", normal="normal", drop=("split",)),
)


def typed_tables(directory: Path, out: Path, settings: RunSettings) -> list[Table]:
    """Measure all tables; write ``typed-tables.csv`` beside ``out``."""
    path = out.with_name("typed-tables.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for table in TABLES:
            rows.append(measure_table(table, directory / "tables" / f"{table.name}.parquet", settings))
            writer.writerow(rows[-1])
            file.flush()
    body = [[TableCell(_text(row[column])) for column in _COLUMNS] for row in rows]
    return [Table("Real tables of mixed type", list(_COLUMNS), body)]


def measure_table(spec: TypedTable, path: Path, settings: RunSettings) -> dict[str, Any]:
    """Fit on a random half of the normal rows and judge the rest; one row of the result."""
    if not path.is_file():
        raise DataError(f"There is no table {str(path)!r}. Put the table there, or name another folder.")
    table = read_table(path)
    anomalous = spec.is_anomaly(table)
    features = table.drop_columns([spec.label, *spec.drop])
    rng = np.random.default_rng(0)
    normal = rng.permutation(np.flatnonzero(~anomalous))
    half = len(normal) // 2
    train = features.take(pa.array(normal[: min(half, settings.max_train or half)]))
    held = normal[half:][: settings.max_test]
    strange = rng.permutation(np.flatnonzero(anomalous))[: settings.max_test]
    new, new_normal = features.take(pa.array(np.r_[held, strange])), features.take(pa.array(held))

    detector = PTAD(missing=spec.missing, device=settings.device, verbose=0).fit(train)
    y = np.r_[np.zeros(len(held)), np.ones(len(strange))]
    p_values = detector.p_value(new_normal)
    planted = planted_cells(detector, train, new_normal[:N_PLANTED])
    alarms = {f"alarms_{rate}": float((p_values <= rate).mean()) for rate in RATES}
    return {
        "table": spec.name,
        "n_train": len(train),
        "auc_roc": roc_auc_score(y, detector.anomaly_score(new)),
        "auc_roc_knn": roc_auc_score(y, _neighbours(train, new, spec)),
        **alarms,
        "n_planted": planted.n_planted,
        "flagged": planted.flagged,
        "first": planted.first,
        "first_three": planted.first_three,
    }


def _neighbours(train: pa.Table, new: pa.Table, spec: TypedTable) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Distance to the fifth neighbour on one-hot, min-max columns; a missing cell is the middle of its column."""
    schema = fit_schema(train, scaling="minmax", missing=spec.missing)
    known, rows = (np.nan_to_num(schema.encode(table), nan=0.5) for table in (train, new))
    distances = NearestNeighbors(n_neighbors=5).fit(known).kneighbors(rows)[0]
    return np.asarray(distances[:, -1], dtype=np.float64)


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
