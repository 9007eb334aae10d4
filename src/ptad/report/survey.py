"""One pass over a table: everything that the report shows, at constant memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.arrays import Mask, Matrix
from ptad.explanation import Explanation
from ptad.jobs import Progress
from ptad.jobs.bad_cell_list import BadCellList
from ptad.jobs.batches import known_columns, operating_point
from ptad.jobs.explain import TopRows
from ptad.jobs.labels import check_label, is_anomaly
from ptad.jobs.scored_batch import CellCounts
from ptad.jobs.training_table import TrainingTable
from ptad.model import Model
from ptad.report.cross_fit import RowScorer
from ptad.report.drift import DriftTally
from ptad.report.over_time import TimeColumn, TimeTally
from ptad.report.score_histogram import ScoreHistogram, ScoreScale
from ptad.tables import BadCells
from ptad.tables.places import IN_MEMORY, Places, located

# Flagged rows per batch that are explained, as a sample of all flagged rows.
EXPLAINED_PER_BATCH = 64
_CONTRIBUTIONS = b"reasons"


@dataclass
class Label:
    """A label column; ``normal`` are its values for normal rows, or none of them where it holds 0/1 or false/true."""

    column: str
    normal: tuple[str, ...]

    def anomalous(self, batch: pa.RecordBatch) -> Mask:
        """Return which rows are labelled as anomalies."""
        check_label(self.column, batch.schema.names, "The table")
        place = batch.schema.get_field_index(self.column)
        return is_anomaly(batch.column(place), self.normal, (), self.column)


@dataclass(frozen=True, eq=False)
class BatchScores:
    """The expensive results of a batch, which can be stored and counted later."""

    scores: Matrix  # (n_rows,)
    first_reason: Matrix  # (n_columns,), over the flagged rows of the batch, as in Survey
    share: Matrix  # the same

    def to_batch(self) -> pa.RecordBatch:
        """Return a record batch with one row per row of the table; the sums over columns are in its metadata."""
        sums = {"first_reason": self.first_reason.tolist(), "share": self.share.tolist()}
        schema = pa.schema([("score", pa.float64())], metadata={_CONTRIBUTIONS: json.dumps(sums)})
        return pa.RecordBatch.from_arrays([pa.array(self.scores)], schema=schema)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> BatchScores:
        """Read back what :meth:`to_batch` returned."""
        sums = json.loads(batch.schema.metadata[_CONTRIBUTIONS])
        return cls(batch.column("score").to_numpy(), np.array(sums["first_reason"]), np.array(sums["share"]))


class Survey:
    """Counts, histograms and the highest scores of all batches that were added.

    ``add`` is ``score``, which runs the model, followed by ``count_in``, which only counts: stored scores of a batch
    are counted without running the model again. ``time`` names a column of dates for scores over time.
    """

    def __init__(
        self,
        model: Model,
        top: int,
        label: Label | None = None,
        scorer: RowScorer | None = None,
        *,
        time: str | None = None,
        strict: bool = False,
        places: Places = IN_MEMORY,
        listed: BadCellList | None = None,
    ) -> None:
        self.model, self.label, self.time, self.strict = model, label, time, strict
        self.places, self._bad_cell_list = places, listed or BadCellList(places)
        self.scorer = scorer or RowScorer(model)
        self.threshold, _ = operating_point(model)
        calibration = model.detector_.calibration
        assert calibration is not None  # or the model would have no threshold
        self.calibration, self.scale = calibration, ScoreScale.of(calibration.scores)
        self.normal = ScoreHistogram(self.threshold, self.scale)  # of all rows that are not labelled as anomalies
        self.anomalous = ScoreHistogram(self.threshold, self.scale)
        self.highest = TopRows(top)
        self._time_column = TimeColumn.of(model.schema_, time)
        self.over_time = None
        if self._time_column is not None:
            self.over_time = TimeTally(self._time_column.name, self.threshold, self.scale)
        self.drift = DriftTally(
            model.schema_, model.detector_.reference, training_table=self.scorer.scores_training_table
        )
        self.cells = CellCounts.none(model.schema_)
        self.training = TrainingTable(model.detector_.reference)
        n_columns = len(model.schema_.names)
        # over the flagged rows: how often a column contributes most, the sum of its shares of positive contributions
        self.first_reason, self.share = np.zeros(n_columns), np.zeros(n_columns)
        self.n_rows = 0
        self.ignored: list[str] = []
        self.changed_constants: dict[str, Any] = {}  # columns that were constant in training, with a new value

    def add_all(self, batches: Iterable[pa.RecordBatch], progress: Progress | None = None) -> None:
        """Add every batch; ``progress`` is called with the number of rows so far, and of all rows where it is known."""
        for batch in batches:
            self.add(batch)
            if progress is not None:
                progress(self.n_rows, getattr(batches, "n_rows", None))

    def add(self, batch: pa.RecordBatch) -> BatchScores:
        """Score a batch, count it, and return its scores."""
        scored = self.score(batch, self.n_rows)
        self.count_in(batch, scored)
        return scored

    def score(self, batch: pa.RecordBatch, start: int) -> BatchScores:
        """Score the batch that begins at row ``start``, without counting it."""
        rows = self.model_columns(batch)
        numbers = start + np.arange(batch.num_rows)
        with located(self.places.after(start)):
            encoded = self.model.schema_.encode(rows, BadCells(strict=self.strict))
        scores = self.scorer.scores(rows, encoded, numbers)
        return BatchScores(scores, *self._contributions(rows, numbers, np.flatnonzero(scores > self.threshold)))

    def count_in(self, batch: pa.RecordBatch, scored: BatchScores) -> None:
        """Count a batch, the next one in the order of the table."""
        scores = scored.scores
        anomalous = np.zeros(len(scores), dtype=bool) if self.label is None else self.label.anomalous(batch)
        rows = self.model_columns(batch)
        bad = BadCells()  # where they are refused, scoring has raised
        encoded = self.model.schema_.encode(rows, bad)
        self._bad_cell_list.add(bad, self.n_rows)
        self.drift.add(encoded)
        self.training.add(encoded)
        self.cells += CellCounts.of(encoded, self.model.schema_, bad)
        self.changed_constants |= self.model.schema_.changed_constants(rows)
        self.normal.add(scores[~anomalous])
        self.anomalous.add(scores[anomalous])
        if self._time_column is not None and self.over_time is not None:
            self.over_time.add(*self._time_column.read(batch), scores)
        self.first_reason += scored.first_reason
        self.share += scored.share
        self.highest.add(rows, self.n_rows, scores, anomalous)
        self.n_rows += len(scores)

    @property
    def n_flagged(self) -> int:
        """Rows above the threshold."""
        return self.normal.n_flagged + self.anomalous.n_flagged

    def explain_highest(self) -> Explanation | None:
        """Return the explanation of the rows with the highest scores; None before the first batch."""
        rows = self.highest.rows
        return None if rows is None else self.scorer.explain(rows, self.highest.numbers)

    def model_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that the model uses; a missing one is an error."""
        label = None if self.label is None else self.label.column
        known, self.ignored = known_columns(self.model.schema_, batch.schema.names, label)
        return batch.select(known)

    def _contributions(
        self, rows: pa.RecordBatch, numbers: NDArray[np.int64], flagged: NDArray[np.int64]
    ) -> tuple[Matrix, Matrix]:
        """Return how often each column is the main reason of a flagged row, and the sum of its shares."""
        n_columns = len(self.share)
        if not len(flagged):
            return np.zeros(n_columns), np.zeros(n_columns)
        sample = flagged[:: -(-len(flagged) // EXPLAINED_PER_BATCH)]
        explanation = self.scorer.explain(rows.take(pa.array(sample)), numbers[sample])
        weight = len(flagged) / len(sample)
        main = np.argmax(explanation.contribution_values, axis=1)
        first = np.bincount(main, minlength=n_columns).astype(np.float64)
        return weight * first, weight * explanation.percentage_values.sum(axis=0) / 100.0
