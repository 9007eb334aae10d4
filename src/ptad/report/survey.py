"""One pass over a table: everything the report needs, at constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.engines.labels import check_label, is_anomaly
from ptad.engines.local import rows_from
from ptad.estimator import PTAD
from ptad.report.drift import DriftTally
from ptad.report.score_histogram import ScoreHistogram
from ptad.scoring import Explanation

# Strange rows per batch whose columns are looked at, which costs one scoring per column; they stand for the others.
EXPLAINED_PER_BATCH = 64
_REASONS = b"reasons"

Array = NDArray[np.float64]
Progress = Callable[[int, int | None], None]


@dataclass
class Label:
    """A column that says which rows are normal: those with one of these values, or with 0 or false."""

    column: str
    normal: tuple[str, ...]

    def anomalous(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return True for the rows that are labelled as anomalies."""
        check_label(self.column, batch.schema.names, "The table")
        place = batch.schema.get_field_index(self.column)
        return is_anomaly(batch.column(place), self.normal, (), self.column)


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the model says of a batch: all that is costly to find out, so that it can be kept and counted in later.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        The score of every row.
    first_reason, share : ndarray of shape (n_columns,)
        Over the strange rows of the batch, as in :class:`Survey`.
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
    def from_batch(cls, batch: pa.RecordBatch) -> Judgement:
        """Return what :meth:`to_batch` was given."""
        reasons = json.loads(batch.schema.metadata[_REASONS])
        return cls(batch.column("score").to_numpy(), np.array(reasons["first_reason"]), np.array(reasons["share"]))


class Survey:
    """What is known about a table after its batches were added.

    ``add`` is ``judge``, which asks the model, and then ``count_in``, which only counts: whoever has kept the judgement
    of a batch counts it in without asking again.

    Attributes
    ----------
    normal, anomalous : ScoreHistogram
        Scores of all rows; with labels, ``anomalous`` holds those of the labelled anomalies and ``normal`` the others.
    drift : DriftTally
        The table against the training rows.
    changed_constants : dict
        Columns that the model left out since they never varied, and do now, with a new value.
    first_reason, share : ndarray of shape (n_columns,)
        Over the strange rows: how often each column contributes most, and its average share of the score.
    """

    def __init__(self, model: PTAD, top: int, label: Label | None = None) -> None:
        self.model, self.top, self.label = model, top, label
        schema, threshold = model.schema_, -float(model.offset_)
        self.threshold = threshold
        self.normal, self.anomalous = ScoreHistogram(threshold), ScoreHistogram(threshold)
        self.drift = DriftTally(schema, training_rows(model))
        self.first_reason, self.share = np.zeros(len(schema.names)), np.zeros(len(schema.names))
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
            with rows_from(self.n_rows):
                self.add(batch)
            if progress is not None:
                progress(self.n_rows, getattr(batches, "n_rows", None))

    def add(self, batch: pa.RecordBatch) -> Judgement:
        """Score a batch, count it in and return what the model says of it."""
        judgement = self.judge(batch)
        self.count_in(batch, judgement)
        return judgement

    def judge(self, batch: pa.RecordBatch) -> Judgement:
        """Ask the model about a batch; nothing is counted."""
        rows = self._features(batch)
        scores = self.model.scorer_.parts(self.model.schema_.encode(rows), _context(self.model)).score
        return Judgement(scores, *self._reasons(rows, np.flatnonzero(scores > self.threshold)))

    def count_in(self, batch: pa.RecordBatch, judgement: Judgement) -> None:
        """Count a batch in, the next one in the order of the table."""
        scores = judgement.scores
        anomalous = np.zeros(len(scores), dtype=bool) if self.label is None else self.label.anomalous(batch)
        rows = self._features(batch)
        self.drift.add(self.model.schema_.encode(rows))
        self.changed_constants |= self.model.schema_.changed_constants(rows)
        self.normal.add(scores[~anomalous])
        self.anomalous.add(scores[anomalous])
        self.first_reason += judgement.first_reason
        self.share += judgement.share
        self._keep_top(rows, scores, anomalous)
        self.n_rows += len(scores)

    @property
    def n_strange(self) -> int:
        """Rows beyond the threshold."""
        return self.normal.n_strange + self.anomalous.n_strange

    def explain_top(self) -> Explanation | None:
        """Return the explanation of the strangest rows, in the order of ``top_numbers``."""
        return None if self._top_rows is None else self.model.explain(self._top_rows)

    def _features(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out what is not for the model; what it misses is named by the schema."""
        schema = self.model.schema_
        label = None if self.label is None else self.label.column
        wanted = set(schema.inputs)
        if schema.from_array:  # columns are known by their place: all but the label
            kept = [name for name in batch.schema.names if name != label or len(batch.schema.names) == len(wanted)]
        else:
            kept = [name for name in batch.schema.names if name in wanted]
            self.ignored = [name for name in batch.schema.names if name not in wanted and name != label]
        return batch.select(kept)

    def _reasons(self, rows: pa.RecordBatch, strange: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return how often each column is the main reason of a strange row, and the sum of its shares of the scores."""
        first, shares = np.zeros(len(self.share)), np.zeros(len(self.share))
        if not len(strange):
            return first, shares
        looked_at = strange[:: -(-len(strange) // EXPLAINED_PER_BATCH)]
        cells = self.model.explain(rows.take(pa.array(looked_at))).contribution_values
        weight = len(strange) / len(looked_at)
        first += weight * np.bincount(np.argmax(cells, axis=1), minlength=cells.shape[1])
        raising = np.maximum(cells, 0.0)  # a column that makes a row more normal drives no alarm
        shares += weight * (raising / raising.sum(axis=1, keepdims=True)).sum(axis=0)
        return first, shares

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


def training_rows(model: PTAD) -> NDArray[np.float32]:
    """Return the encoded training rows kept in the model: (n_samples, n_rows, n_encoded), overlapping samples."""
    scorer = model.scorer_
    kept = scorer.reference_rows if scorer.retrieval is None else scorer.retrieval.rows.unsqueeze(0)
    return np.asarray(kept.cpu().numpy(), dtype=np.float32)


def _context(model: PTAD) -> Any:
    return model.context
