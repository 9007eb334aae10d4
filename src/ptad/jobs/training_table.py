"""Detects whether a table is the one that a model was fitted on, or contains it: metrics on such rows are too good.

The reference rows of a model are training rows. A table with nearly all of them contains the training table. That is
evidence only where most rows are different: any table with few categories has the same rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Matrix

MIN_MATCHED = 0.99  # share of the reference rows in a table from which on it counts as the training table
MIN_REPEATED = 0.4  # share of the rows that should be new from which on too many are reference rows
MIN_UNIQUE = 0.5  # share of the reference rows that occur once from which on a match is evidence
MIN_ROWS = 20  # reference rows

WARNING = (
    "the model was fitted on this table, or on a part of it: scores of training rows are too low, and figures on them "
    "are too good. Use rows that it was not fitted on; a report shows held-out scores of the training rows themselves"
)


class TrainingTable:
    """Searches for the reference rows of a model in a table, batch by batch at constant memory."""

    def __init__(self, reference: Matrix) -> None:
        self._hashes, self._counts = np.unique(row_hashes(reference), return_counts=True)
        self._matches = np.zeros(len(self._hashes), dtype=np.int64)
        self._n_rows, n_reference = 0, len(reference)
        self._unique = float((self._counts == 1).sum()) / max(n_reference, 1)
        self._is_evidence = n_reference >= MIN_ROWS and self._unique >= MIN_UNIQUE

    def add(self, rows: Matrix | None) -> None:
        """Search in encoded rows; batches that were scored by an earlier run have none."""
        if rows is not None:
            self._n_rows += len(rows)
            self.add_matches(self.matches(rows))

    def matches(self, rows: Matrix) -> NDArray[np.int64]:
        """Return the number of the equal reference row for every row that has one, without adding them."""
        if not self._is_evidence:
            return np.empty(0, dtype=np.int64)
        hashes = row_hashes(rows)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.asarray(places[self._hashes[places] == hashes], dtype=np.int64)

    def add_matches(self, matches: NDArray[np.int64]) -> None:
        """Add rows by their :meth:`matches`, which may come from another machine with the same model."""
        self._matches += np.bincount(matches, minlength=len(self._matches))

    @property
    def detected(self) -> bool:
        """Whether the rows so far contain the training table."""
        return self._is_evidence and self._n_matched >= MIN_MATCHED * int(self._counts.sum())

    @property
    def repeated(self) -> bool:
        """Whether far more of the rows so far are reference rows than if they were new."""
        least = 1.0 - self._unique * (1.0 - MIN_REPEATED)  # about 1 - unique of new rows equal a reference row
        return self._is_evidence and self._n_rows > 0 and self._n_matched >= least * self._n_rows

    @property
    def _n_matched(self) -> int:
        return int(np.minimum(self._matches, self._counts).sum())


def row_hashes(rows: Matrix) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every row; equal rows have equal hashes."""
    cells = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))  # one NaN, and no negative zero
    bits = cells.view(np.uint64)
    odd = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = ((bits ^ (bits >> np.uint64(29))) * odd).sum(axis=1, dtype=np.uint64)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
