"""Whether a table is the one that a model was fitted on, or holds it: figures on such rows are too good.

The reference rows of a model are training rows. If nearly all of them are in a table, so is the training table. That
tells something only where rows are mostly different: a table of few categories holds the same rows whoever made it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FOUND = 0.99  # share of the reference rows in a table from which on it counts as the training table
UNIQUE = 0.5  # share of the reference rows that occur once from which on a match tells something
FEWEST = 20  # reference rows

WARNING = (
    "the model was fitted on this table, or on a part of it: scores of training rows are too low, and figures on them "
    "are too good. Use rows that it was not fitted on; a report shows held-out scores of the training rows themselves"
)


class TrainingTable:
    """Looks for the reference rows of a model in a table, batch by batch at constant memory."""

    def __init__(self, reference: NDArray[np.float64]) -> None:
        self._hashes, self._counts = np.unique(row_hashes(reference), return_counts=True)
        self._seen = np.zeros(len(self._hashes), dtype=np.int64)
        n_rows = len(reference)
        self._tells = n_rows >= FEWEST and bool((self._counts == 1).sum() >= UNIQUE * n_rows)

    def add(self, rows: NDArray[np.float64] | None) -> None:
        """Look at some encoded rows; an earlier run has not left any."""
        if self._tells and rows is not None:
            found = row_hashes(rows)
            places = np.minimum(np.searchsorted(self._hashes, found), len(self._hashes) - 1)
            self._seen += np.bincount(places[self._hashes[places] == found], minlength=len(self._seen))

    @property
    def is_it(self) -> bool:
        """Whether the rows so far hold the training table."""
        held = np.minimum(self._seen, self._counts).sum()
        return self._tells and bool(held >= FOUND * self._counts.sum())


def row_hashes(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return one number of 64 bits per row; equal rows have equal ones."""
    cells = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))  # one NaN, and no negative zero
    bits = cells.view(np.uint64)
    odd = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = ((bits ^ (bits >> np.uint64(29))) * odd).sum(axis=1, dtype=np.uint64)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
