"""Real tables with text and missing values: accuracy, observed false-alarm rates, and planted errors.

For each table: AUC-ROC beside that of one-hot, min-max kNN; the observed false-alarm rate on new normal rows at three
target rates; the planted cells and unseen categories of :mod:`ptad.benchmark.experiments.planted_errors`; AUC-ROC with
informative missing cells beside the first neighbour on median-filled columns with missing indicators; and AUC-ROC
without one term, for the page of ``default-parts``. A term is standardised on its own, so the score without it is the
sum of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from ptad.arrays import Mask, Matrix, rounded
from ptad.benchmark.encoding import one_hot, scale_columns
from ptad.benchmark.experiments.base import Measurement
from ptad.benchmark.experiments.planted_errors import planted_cells, planted_gaps, planted_unseen
from ptad.benchmark.markdown import Table
from ptad.benchmark.metrics import RATES
from ptad.benchmark.plan import RunSettings
from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.jobs.labels import is_anomaly
from ptad.tables import fit_schema, read_table

N_PLANTED = 2_000
GAPS_NORMAL, GAPS_ANOMALIES = 0.1, 0.6
N_GAP_COLUMNS = 3  # drawn at random, one emptied at a time


@dataclass(frozen=True)
class TypedTable:
    """A table of the ``tables`` folder: its label column, and the label value of anomalies or of normal rows."""

    name: str
    label: str
    anomaly: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


TABLES = (
    TypedTable("hypothyroid", "binaryClass", anomaly=("N",)),
    TypedTable("bank_additional_full", "y", anomaly=("yes",), missing=("unknown",)),
    TypedTable("adult", "income", anomaly=(">50K",), drop=("split",)),
    TypedTable("nsl_kdd", "attack", normal=("normal",), drop=("split",)),
)


def typed_rows(directory: Path, out: Path, settings: RunSettings) -> Iterator[dict[str, Any]]:
    """Yield one row per table."""
    for table in TABLES:
        yield measure_table(table, directory / "tables" / f"{table.name}.parquet", settings)


def format_typed(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the rows as two tables: accuracy and planted cells; unseen categories and missing cells."""

    def column(name: str, form: str) -> list[str]:
        return [format(float(row[name]), form) for row in rows]

    def share(name: str, of: str) -> list[str]:
        return [f"{text} of {int(row[of]):,}" for text, row in zip(column(name, ".0%"), rows, strict=True)]

    names = [row["table"] for row in rows]
    accuracy = {
        "Table": names,
        "AUC-ROC": column("auc_roc", ".3f"),
        "one-hot min-max kNN": column("auc_roc_knn", ".3f"),
        **{f"flagged normal rows at {rate:g}": column(f"false_alarms_{rate}", ".4f") for rate in reversed(RATES)},
        "planted cells: flagged at 0.01": share("flagged", "n_planted"),
        "changed column first": column("first", ".1%"),
        "in the first three": column("first_three", ".1%"),
    }
    unseen = {
        "Table": names,
        "unseen category: flagged at 0.01": share("unseen_flagged", "n_unseen"),
        "its column first": column("unseen_first", ".0%"),
        "informative gaps: AUC-ROC": column("auc_roc_gaps", ".3f"),
        "first neighbour with missing indicators": column("auc_roc_gaps_nn1", ".3f"),
    }
    titles = ("Accuracy, false alarms, planted cells", "Unseen categories and gaps")
    return [Table.of_columns(title, columns) for title, columns in zip(titles, (accuracy, unseen), strict=True)]


def measure_table(spec: TypedTable, path: Path, settings: RunSettings) -> dict[str, Any]:
    """Fit on a random half of the normal rows, score the rest, and return one row of the results."""
    if not path.is_file():
        raise DataError(f"There is no table {str(path)!r}. Put the table there, or name another folder.")
    table = read_table(path)
    anomalous = is_anomaly(table[spec.label].combine_chunks(), spec.normal, spec.anomaly, spec.label)
    features = table.drop_columns([spec.label, *spec.drop])
    rng = np.random.default_rng(0)
    normal = rng.permutation(np.flatnonzero(~anomalous))
    half = len(normal) // 2
    train = features.take(pa.array(normal[: min(half, settings.max_train or half)]))
    test_normal = normal[half:][: settings.max_test]
    test_anomalies = rng.permutation(np.flatnonzero(anomalous))[: settings.max_test]
    new_normal = features.take(pa.array(test_normal))
    new = features.take(pa.array(np.r_[test_normal, test_anomalies]))
    y = np.arange(len(new)) >= len(test_normal)

    detector = _fit(train, spec, settings)
    terms = detector.term_scores(new)
    p_values = detector.p_value(new_normal)
    cells = planted_cells(detector, train, new_normal[:N_PLANTED])
    unseen = planted_unseen(detector, train, new_normal[:N_PLANTED])
    return {
        "table": spec.name,
        "n_train": len(train),
        "auc_roc": roc_auc_score(y, score_without(terms)),
        "auc_roc_knn": roc_auc_score(y, _distances(train, new, spec, 5)),
        **{f"false_alarms_{rate}": float((p_values <= rate).mean()) for rate in reversed(RATES)},
        **asdict(cells),
        "n_unseen": unseen.n_planted,
        "unseen_flagged": unseen.flagged,
        "unseen_first": unseen.first,
        **_with_gaps(train, new, y, spec, settings),
        **{f"auc_roc_without_{name}": roc_auc_score(y, score_without(terms, name)) for name in terms.column_names},
    }


def score_without(terms: pa.Table, name: str | None = None) -> Matrix:
    """Return the score as the sum of all terms, or of all but one."""
    return np.asarray(rounded(np.sum([terms[term].to_numpy() for term in terms.column_names if term != name], axis=0)))


def _with_gaps(train: pa.Table, new: pa.Table, y: Mask, spec: TypedTable, settings: RunSettings) -> dict[str, float]:
    """Return the mean AUC-ROC over some columns, each emptied in few normal rows and in many anomalies."""
    rng = np.random.default_rng(1)
    names = fit_schema(train, missing=spec.missing).names
    default, nearest = [], []
    for name in rng.choice(names, min(N_GAP_COLUMNS, len(names)), replace=False):
        train_gaps = planted_gaps(train, str(name), np.full(len(train), GAPS_NORMAL), rng)
        new_gaps = planted_gaps(new, str(name), np.where(y, GAPS_ANOMALIES, GAPS_NORMAL), rng)
        default.append(roc_auc_score(y, _fit(train_gaps, spec, settings).anomaly_score(new_gaps)))
        nearest.append(roc_auc_score(y, _distances(train_gaps, new_gaps, spec, 1, indicators=True)))
    return {"auc_roc_gaps": float(np.mean(default)), "auc_roc_gaps_nn1": float(np.mean(nearest))}


def _fit(train: pa.Table, spec: TypedTable, settings: RunSettings) -> PTAD:
    return PTAD(missing=spec.missing, device=settings.device, verbose=0).fit(train)


def _distances(train: pa.Table, new: pa.Table, spec: TypedTable, k: int, indicators: bool = False) -> Matrix:
    """Return the distances to the k-th neighbour on one-hot, min-max, median-filled columns."""
    schema = fit_schema(train, missing=spec.missing)
    reference, rows = (one_hot(schema.encode(table), schema.features, indicators) for table in (train, new))
    reference, rows = scale_columns(reference, rows, "minmax")
    distances = NearestNeighbors(n_neighbors=k).fit(reference).kneighbors(rows)[0]
    return np.asarray(distances[:, -1], dtype=np.float64)


TYPED_TABLES = Measurement("Tables of mixed type", typed_rows, format_typed)
