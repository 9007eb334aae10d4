"""One pass over a table: everything the report needs, at constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.estimator import PTAD
from ptad.explanation import Explanation
from ptad.jobs.bad_cell_list import BadCellList
from ptad.jobs.labels import check_label, is_anomaly
from ptad.jobs.scored_batch import CellCounts
from ptad.jobs.training_table import TrainingTable
from ptad.report.cross_fit import RowScorer
from ptad.report.drift import DriftTally
from ptad.report.over_time import TimeColumn, TimeTally
from ptad.report.score_histogram import ScoreHistogram, ScoreScale
from ptad.tables import BadCells
from ptad.tables.places import IN_MEMORY, Places, located

# Flagged rows per batch whose columns are looked at; they stand for the others.
EXPLAINED_PER_BATCH = 64
_REASONS = b"reasons"

Array = NDArray[np.float64]
Progress = Callable[[int, int | None], None]


@dataclass
class Label:
    """A column that tells normal rows, which have one of these values, or 0 or false, from anomalies."""

    column: str
    normal: tuple[str, ...]

    def anomalous(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return True for the rows that are labelled as anomalies."""
        check_label(self.column, batch.schema.names, "The table")
        place = batch.schema.get_field_index(self.column)
        return is_anomaly(batch.column(place), self.normal, (), self.column)


@dataclass(frozen=True, eq=False)
class BatchScores:
    """What the model says of a batch: all that is costly to find out, so that it can be kept and counted in later.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        The score of every row.
    first_reason, share : ndarray of shape (n_columns,)
        Over the flagged rows of the batch, as in :class:`Survey`.
    """

    scores: Array
    first_reason: Array
    share: Array

    def to_batch(self) -> pa.RecordBatch:
        """Return it as one record batch with a row per row of the table; the sums over columns travel as metadata."""
        reasons = {"first_reason": self.first_reason.tolist(), "share": self.share.tolist()}
        schema = pa.schema([("score", pa.float64())], metadata={_REASONS: json.dumps(reasons)})
        return pa.RecordBatch.from_arrays([pa.array(self.scores)], schema=schema)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> BatchScores:
        """Return what :meth:`to_batch` was given."""
        reasons = json.loads(batch.schema.metadata[_REASONS])
        return cls(batch.column("score").to_numpy(), np.array(reasons["first_reason"]), np.array(reasons["share"]))


class Survey:
    """What is known about a table after its batches were added.

    ``add`` is ``score``, which asks the model, and then ``count_in``, which only counts: whoever has kept the scores of
    a batch counts it in without asking again.

    Attributes
    ----------
    normal, anomalous : ScoreHistogram
        Scores of all rows; with labels, ``anomalous`` holds those of the labelled anomalies and ``normal`` the others.
    drift : DriftTally
        The table against the training rows.
    cells : CellCounts
        Rows with missing values and with unseen categories, and cells that cannot be read.
    training : TrainingTable
        Whether the model was fitted on this table.
    over_time : TimeTally or None
        Scores and flagged rows by period, where there is a column of dates or one is named by ``time``.
    changed_constants : dict
        Columns that the model excludes since they never varied, and do now, with a new value.
    first_reason, share : ndarray of shape (n_columns,)
        Over the flagged rows: how often each column contributes most, and the sum of its shares of the positive
        contributions.
    """

    def __init__(
        self,
        model: PTAD,
        top: int,
        label: Label | None = None,
        scorer: RowScorer | None = None,
        *,
        time: str | None = None,
        strict: bool = False,
        places: Places = IN_MEMORY,
        listed: BadCellList | None = None,
    ) -> None:
        self.model, self.top, self.label, self.time, self.strict = model, top, label, time, strict
        self.places, self._listed = places, listed or BadCellList(places)
        self.scorer = scorer or RowScorer(model)
        calibration = model.detector_.calibration
        assert calibration is not None  # a report starts from a threshold
        n_columns, threshold = len(model.schema_.names), -float(model.offset_)
        self.threshold, self.calibration = threshold, calibration
        self.scale = ScoreScale.of(calibration.scores)
        self.normal, self.anomalous = ScoreHistogram(threshold, self.scale), ScoreHistogram(threshold, self.scale)
        self._time_column = TimeColumn.of(model.schema_, time)
        self.over_time = None
        if self._time_column is not None:
            self.over_time = TimeTally(self._time_column.name, threshold, self.scale)
        self.drift = DriftTally(model.schema_, model.detector_.reference)
        self.cells = CellCounts.none(model.schema_)
        self.training = TrainingTable(model.detector_.reference)
        self.first_reason, self.share = np.zeros(n_columns), np.zeros(n_columns)
        self.n_rows = 0
        self.top_scores: Array = np.empty(0)
        self.top_numbers: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.top_labels: NDArray[np.bool_] = np.empty(0, dtype=bool)
        self._top_rows: pa.Table | None = None
        self.ignored: list[str] = []
        self.changed_constants: dict[str, Any] = {}

    def add_all(self, batches: Iterable[pa.RecordBatch], progress: Progress | None = None) -> None:
        """Add every batch; ``progress`` is told the number of rows done, and of all rows where it is known."""
        for batch in batches:
            self.add(batch)
            if progress is not None:
                progress(self.n_rows, getattr(batches, "n_rows", None))

    def add(self, batch: pa.RecordBatch) -> BatchScores:
        """Score a batch, count it in and return what the model says of it."""
        found = self.score(batch, self.n_rows)
        self.count_in(batch, found)
        return found

    def score(self, batch: pa.RecordBatch, start: int) -> BatchScores:
        """Ask the model about the batch that begins at row ``start``; nothing is counted."""
        rows = self.known(batch)
        numbers = start + np.arange(batch.num_rows)
        with located(self.places.after(start)):
            encoded = self.model.schema_.encode(rows, BadCells(strict=self.strict))
        scores = self.scorer.scores(rows, encoded, numbers)
        return BatchScores(scores, *self._reasons(rows, numbers, np.flatnonzero(scores > self.threshold)))

    def count_in(self, batch: pa.RecordBatch, found: BatchScores) -> None:
        """Count a batch in, the next one in the order of the table."""
        scores = found.scores
        anomalous = np.zeros(len(scores), dtype=bool) if self.label is None else self.label.anomalous(batch)
        rows = self.known(batch)
        bad = BadCells()  # what is strict has been refused
        encoded = self.model.schema_.encode(rows, bad)
        self._listed.add(bad, self.n_rows)
        self.drift.add(encoded)
        self.training.add(encoded)
        self.cells += CellCounts.of(encoded, self.model.schema_, bad)
        self.changed_constants |= self.model.schema_.changed_constants(rows)
        self.normal.add(scores[~anomalous])
        self.anomalous.add(scores[anomalous])
        if self._time_column is not None and self.over_time is not None:
            self.over_time.add(*self._time_column.read(batch), scores)
        self.first_reason += found.first_reason
        self.share += found.share
        self._keep_top(rows, scores, anomalous)
        self.n_rows += len(scores)

    @property
    def n_flagged(self) -> int:
        """Rows beyond the threshold."""
        return self.normal.n_flagged + self.anomalous.n_flagged

    def explain_top(self) -> Explanation | None:
        """Return the explanation of the rows with the highest scores, in the order of ``top_numbers``."""
        return None if self._top_rows is None else self.scorer.explain(self._top_rows, self.top_numbers)

    def top_bad_cells(self) -> BadCells:
        """Return the cells of the rows with the highest scores that cannot be read."""
        return BadCells() if self._top_rows is None else self.model.schema_.bad_cells(self._top_rows)

    def known(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop what is not for the model; a column that it misses is an error."""
        schema = self.model.schema_
        label = None if self.label is None else self.label.column
        wanted = set(schema.inputs)
        if schema.from_array:  # columns are known by their place: all but the label
            kept = [name for name in batch.schema.names if name != label or len(batch.schema.names) == len(wanted)]
        else:
            schema.check_columns(batch.schema.names)
            kept = [name for name in batch.schema.names if name in wanted]
            self.ignored = [name for name in batch.schema.names if name not in wanted and name != label]
        return batch.select(kept)

    def _reasons(
        self, rows: pa.RecordBatch, numbers: NDArray[np.int64], flagged: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return how often each column is the main reason of a flagged row, and the sum of its shares."""
        n_columns = len(self.share)
        if not len(flagged):
            return np.zeros(n_columns), np.zeros(n_columns)
        looked_at = flagged[:: -(-len(flagged) // EXPLAINED_PER_BATCH)]
        explanation = self.scorer.explain(rows.take(pa.array(looked_at)), numbers[looked_at])
        weight = len(flagged) / len(looked_at)
        main = np.argmax(explanation.contribution_values, axis=1)
        first = np.bincount(main, minlength=n_columns).astype(np.float64)
        return weight * first, weight * explanation.percentage_values.sum(axis=0) / 100.0

    def _keep_top(self, rows: pa.RecordBatch, scores: Array, anomalous: NDArray[np.bool_]) -> None:
        best = np.argsort(-scores, kind="stable")[: self.top]
        found = pa.Table.from_batches([rows]).take(pa.array(best))
        table = found if self._top_rows is None else pa.concat_tables([self._top_rows, found])
        all_scores = np.concatenate([self.top_scores, scores[best]])
        # stable: of two equal scores the earlier row stays first
        order = np.argsort(-all_scores, kind="stable")[: self.top]
        self.top_scores = all_scores[order]
        self.top_numbers = np.concatenate([self.top_numbers, best + self.n_rows])[order]
        self.top_labels = np.concatenate([self.top_labels, anomalous[best]])[order]
        self._top_rows = table.take(pa.array(order)).combine_chunks()
