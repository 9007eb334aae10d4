"""Errors planted into rows of real tables: are they flagged, and does the explanation name the right column?

* One cell per normal row is changed to a value that is known in its column but implausible in its row: among the
  training rows most like this row in the other columns, none has it (category) or comes near it (number).
* One cell per normal row is changed to a category that no training row has.
* One column is emptied in a tenth of the normal rows and in most anomalies, so that a missing cell is informative.

Rows that were flagged before the change are excluded from the first two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ptad.arrays import Matrix
from ptad.benchmark.encoding import one_hot, one_hot_columns, scale_columns
from ptad.estimator import PTAD
from ptad.tables.values import is_text

N_NEIGHBOURS = 100
MAX_NEIGHBOUR_ROWS = 5_000
ROWS_PER_CATEGORY = 30  # an unseen category is informative if the known ones are at least this frequent
UNSEEN = "unseen in training"


@dataclass(frozen=True)
class PlantedResult:
    """Number of planted errors, share that is flagged, and how often the changed column of those ranks first."""

    n_planted: int
    flagged: float
    first: float
    first_three: float


def planted_cells(detector: PTAD, train: pa.Table, rows: pa.Table) -> PlantedResult:
    """Plant one error into every row of ``rows`` (normal, not fitted on) and look for it in the explanations."""
    return _detection(detector, *plant(detector, train, _unflagged(detector, rows), np.random.default_rng(0)))


def planted_unseen(detector: PTAD, train: pa.Table, rows: pa.Table) -> PlantedResult:
    """Plant an unseen category into every row of ``rows``, in columns with enough rows per known category."""
    schema, features = detector.schema_, detector.schema_.features
    frequent = [j for j in features.categories if len(train) >= ROWS_PER_CATEGORY * features.n_categories[j]]
    columns = np.array([c for c in features.column[frequent] if is_text(train[schema.names[c]].type)])
    if not len(columns):
        return PlantedResult(0, float("nan"), float("nan"), float("nan"))
    rows = _unflagged(detector, rows)
    changed = np.random.default_rng(0).choice(columns, len(rows))
    for column in np.unique(changed):
        name = schema.names[column]
        values = [UNSEEN if c == column else v for c, v in zip(changed, rows[name].to_pylist(), strict=True)]
        rows = _with_values(rows, name, values)
    return _detection(detector, rows, changed)


def planted_gaps(table: pa.Table, column: str, probability: Matrix, rng: np.random.Generator) -> pa.Table:
    """Empty the cells of a column, each row with its own probability."""
    emptied = rng.random(len(table)) < probability
    values = zip(emptied, table[column].to_pylist(), strict=True)
    return _with_values(table, column, [None if empty else value for empty, value in values])


def _with_values(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


def _unflagged(detector: PTAD, rows: pa.Table) -> pa.Table:
    return rows.filter(pa.array(detector.predict(rows) == 1))


def _detection(detector: PTAD, planted: pa.Table, changed: NDArray[np.int64]) -> PlantedResult:
    flagged = detector.predict(planted) == -1
    if not flagged.any():
        return PlantedResult(len(planted), 0.0, float("nan"), float("nan"))
    top = detector.explain(planted.filter(pa.array(flagged))).top(3)
    names = [detector.schema_.names[c] for c in changed[flagged]]
    first = np.mean([row[0] == name for row, name in zip(top, names, strict=True)])
    first_three = np.mean([name in row for row, name in zip(top, names, strict=True)])
    return PlantedResult(len(planted), float(flagged.mean()), float(first), float(first_three))


def plant(
    detector: PTAD, train: pa.Table, rows: pa.Table, rng: np.random.Generator
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return the rows with one cell changed in each, and the number of the changed column per row."""
    schema = detector.schema_
    sample = train.take(pa.array(rng.permutation(len(train))[:MAX_NEIGHBOUR_ROWS]))
    reference, new = (one_hot(schema.encode(table), schema.features) for table in (sample, rows))
    reference, new = scale_columns(reference, new, "minmax")
    column_of = one_hot_columns(schema.features)
    changed = rng.integers(len(schema.names), size=len(rows))
    for column in np.unique(changed):
        name = schema.names[column]
        selected = np.flatnonzero(changed == column)
        others = column_of != column
        finder = NearestNeighbors(n_neighbors=min(N_NEIGHBOURS, len(reference))).fit(reference[:, others])
        neighbours = finder.kneighbors(new[selected][:, others], return_distance=False)
        values = rows[name].to_pylist()
        for row, replacement in zip(selected, _implausible(sample[name].to_pylist(), neighbours, rng), strict=True):
            values[row] = replacement
        rows = _with_values(rows, name, values)
    return rows, changed


def _implausible(column: list[Any], neighbours: NDArray[np.int64], rng: np.random.Generator) -> list[Any]:
    """Return, for every row of neighbours, a value of the column that none of them has, or that is far from theirs."""
    known = [v for v in column if v is not None]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in known):
        low, high = min(known), max(known)
        replacements: list[Any] = []
        for places in neighbours:
            near = [column[i] for i in places if column[i] is not None] or [low, high]
            replacements.append(low if min(near) - low > high - max(near) else high)
        return replacements
    categories = sorted(set(known), key=str)
    replacements = []
    for places in neighbours:
        present = {column[i] for i in places}
        absent = [v for v in categories if v not in present] or [min(categories, key=known.count)]
        replacements.append(absent[rng.integers(len(absent))])
    return replacements
