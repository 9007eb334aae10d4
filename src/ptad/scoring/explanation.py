"""Why a row is strange, told in the table's own columns, units and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.scoring.attribution import contributions
from ptad.scoring.scorer import Context, Scorer
from ptad.tables import Schema, same_kind

Array = NDArray[np.float64]
PART_NAMES = ("reconstruction", "basis", "prototype", "missing", "neighbour", "local")


@dataclass(frozen=True)
class Explanation:
    """Tables with one row per explained row, of the same library as the rows given (arrays give Arrow tables).

    Attributes
    ----------
    score : ndarray
        Anomaly scores, higher = more anomalous.
    contributions : table
        How much each column adds to the score, signed; a row adds up to its score (see ``attribution``).
    observed, expected : table
        The value of each cell, and what the network makes of the row as a normal one.
    parts : table
        The share of each part of the score: reconstruction, basis, prototype (the network's), missing, and
        neighbour, local (the retrieved rows').
    masking_rate : table
        Share of each column's latent that the P-space masks hide (the paper's mask figure).
    data_mask : table
        The soft mask of each column, averaged over its encoded columns.
    nearest : table
        Number of the nearest basis vector and of the nearest association prototype.
    names : tuple of str
        The columns, in the order of the tables.
    """

    score: Array
    contributions: Any
    observed: Any
    expected: Any
    parts: Any
    masking_rate: Any
    data_mask: Any
    nearest: Any
    names: tuple[str, ...]
    contribution_values: Array

    def top(self, n: int = 3) -> list[list[str]]:
        """Return the n columns that contribute most, for every row."""
        order = np.argsort(-self.contribution_values, axis=1, kind="stable")[:, :n]
        return [[self.names[j] for j in row] for row in order]


def make_explanation(table: Any, schema: Schema, scorer: Scorer, context: Context) -> Explanation:
    """Score, attribute, and fold encoded columns back into original ones."""
    x = schema.encode(table)
    parts, cells = scorer.parts(x, context), scorer.cells(x, context)
    attributed = contributions(scorer, x, schema.groups, parts, cells, context)
    size = np.bincount(schema.groups)

    def columns(values: Array) -> Any:
        return same_kind(table, dict(zip(schema.names, values.T, strict=True)))

    total = np.where(parts.score == 0.0, 1.0, parts.score)
    shares = {name: getattr(parts, name) / total for name in PART_NAMES}
    return Explanation(
        score=parts.score,
        contributions=columns(attributed),
        observed=same_kind(table, schema.observed(table)),
        expected=same_kind(table, schema.decode(cells.expected)),
        parts=same_kind(table, shares),
        masking_rate=columns(_fold(cells.masking_rate, schema) / size),
        data_mask=columns(_fold(cells.data_mask, schema) / size),
        nearest=same_kind(table, {"basis_vector": cells.nearest_basis, "prototype": cells.nearest_prototype}),
        names=schema.names,
        contribution_values=attributed,
    )


def _fold(cells: Array, schema: Schema) -> Array:
    """Add up the encoded columns of each original column; groups are contiguous."""
    starts = np.flatnonzero(np.diff(schema.groups, prepend=-1))
    return np.asarray(np.add.reduceat(cells, starts, axis=1), dtype=np.float64)
