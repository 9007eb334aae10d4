"""Do explanations point at the cell that was changed? Errors planted one per row into normal rows of real tables.

A cell is changed to a value that its column knows but that does not occur beside such other cells: among the training
rows most like this row in the other columns, no row has it (category) or comes near it (number). Rows that raised an
alarm before the change are left out: theirs has another cause. Of the rest, those that raise one afterwards count;
asked is whether the changed column is the first, or among the first three, of the explanation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ptad.estimator import PTAD

N_NEIGHBOURS = 100
MAX_NEIGHBOUR_ROWS = 5_000


@dataclass(frozen=True)
class PlantedResult:
    """What became of the planted errors."""

    n_planted: int
    flagged: float
    first: float
    first_three: float


def planted_cells(detector: PTAD, train: pa.Table, rows: pa.Table, *, seed: int = 0) -> PlantedResult:
    """Plant one error into every row of ``rows`` (normal, not learned from) and look for it in the explanations."""
    rng = np.random.default_rng(seed)
    schema = detector.schema_
    rows = rows.filter(pa.array(detector.predict(rows) == 1))
    planted, changed = plant(detector, train, rows, rng)
    flagged = detector.predict(planted) == -1
    top = detector.explain(planted.filter(pa.array(flagged))).top(3)
    names = [schema.names[c] for c in changed[flagged]]
    first = [row[0] == name for row, name in zip(top, names, strict=True)]
    three = [name in row for row, name in zip(top, names, strict=True)]
    return PlantedResult(len(rows), float(flagged.mean()), _share(first), _share(three))


def plant(
    detector: PTAD, train: pa.Table, rows: pa.Table, rng: np.random.Generator
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return the rows with one cell changed in each, and the number of the changed column per row."""
    schema = detector.schema_
    sample = train.take(pa.array(rng.permutation(len(train))[:MAX_NEIGHBOUR_ROWS]))
    known, new = (np.nan_to_num(schema.encode(t)) for t in (sample, rows))
    changed = rng.integers(len(schema.names), size=len(rows))
    values = {name: rows[name].to_pylist() for name in schema.names}
    for column in np.unique(changed):
        name = schema.names[column]
        at = np.flatnonzero(changed == column)
        others = schema.groups != column
        finder = NearestNeighbors(n_neighbors=min(N_NEIGHBOURS, len(known))).fit(known[:, others])
        near = finder.kneighbors(new[at][:, others], return_distance=False)
        for row, replacement in zip(at, _implausible(sample[name].to_pylist(), near, rng), strict=True):
            values[name][row] = replacement
    arrays = {
        name: pa.array(values[name], type=rows.schema.field(name).type) if name in values else rows[name]
        for name in rows.column_names
    }
    return pa.table(arrays), changed


def _implausible(column: list[Any], near: NDArray[np.int64], rng: np.random.Generator) -> list[Any]:
    """Return, for every set of neighbours, a value of the column that none of them has, or that is far from theirs."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in column if v is not None)
    known = [v for v in column if v is not None]
    if not numeric:
        choices = sorted(set(known), key=str)
        replacements = []
        for neighbours in near:
            present = {column[i] for i in neighbours}
            absent = [v for v in choices if v not in present] or [min(choices, key=known.count)]
            replacements.append(absent[rng.integers(len(absent))])
        return replacements
    low, high = min(known), max(known)
    replacements = []
    for neighbours in near:
        around = [column[i] for i in neighbours if column[i] is not None] or [low, high]
        replacements.append(low if min(around) - low > high - max(around) else high)
    return replacements


def _share(hits: list[bool]) -> float:
    return float(np.mean(hits)) if hits else float("nan")
