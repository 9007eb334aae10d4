"""Held-out scores for the table that a model was fitted on.

A training row is one of the reference rows that it is compared with, so its score is far too low. Therefore the table
is split into folds, and each is scored and explained by a detector that was fitted without its rows; threshold and
p-values are those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.arrays import Indices, Mask, Matrix
from ptad.detector import Detector
from ptad.explanation import Explanation, make_explanation
from ptad.jobs.sampling import Reservoir
from ptad.jobs.training_table import row_hashes
from ptad.model import Model
from ptad.tables import BadCells, Schema, same_kind

Rows = Any  # a record batch or a table of Arrow

N_FOLDS = 5


class RowScorer:
    """Scores and explains rows of a table by one model; ``numbers`` are their positions in the table."""

    scores_training_table = False

    def __init__(self, model: Model) -> None:
        self.model = model

    def scores(self, rows: Rows, encoded: Matrix, numbers: Indices) -> Matrix:
        """Return the scores of rows; ``encoded`` are the same rows, encoded by the schema of the model."""
        return self.model.detector_.scores(encoded)

    def explain(self, rows: Rows, numbers: Indices) -> Explanation:
        """Return the explanation of rows."""
        return make_explanation(rows, self.model.schema_, self.model.detector_)


class CrossFit(RowScorer):
    """Scores and explains the rows of a training table; row i belongs to fold i modulo the number of folds."""

    scores_training_table = True

    def __init__(self, model: Model, schemas: list[Schema], detectors: list[Detector]) -> None:
        super().__init__(model)
        self.schemas, self.detectors = schemas, detectors

    @classmethod
    def fit(cls, model: Model, parts: Iterable[tuple[pa.RecordBatch, Indices]]) -> RowScorer:
        """Fit a detector without each fold, on rows that are encoded without its texts.

        ``parts`` are training rows and their numbers in the table, batch by batch. Of many, a sample is used: about as
        many for each detector as the model has reference rows.
        """
        schemas = [model.schema_] * N_FOLDS
        sample = Reservoir(model.config_.reference.rows * N_FOLDS // (N_FOLDS - 1), seed=0)
        for rows, numbers in parts:
            sample.add(rows, numbers)
            schemas = [_without(schema, rows, numbers % N_FOLDS == k) for k, schema in enumerate(schemas)]
        if model.history_ or sample.n_seen < 2 * N_FOLDS:
            return RowScorer(model)  # training takes minutes and is not repeated for every fold
        table, numbers = sample.rows(rows.schema)
        parts_to_fit = [table.take(pa.array(np.flatnonzero(numbers % N_FOLDS != k))) for k in range(N_FOLDS)]
        encoded = [schema.encode(part, BadCells()) for schema, part in zip(schemas, parts_to_fit, strict=True)]
        return cls(model, schemas, [refitted(model, part, seed=k) for k, part in enumerate(encoded)])

    def _folds(self, numbers: Indices) -> Iterator[tuple[Indices, Schema, Detector]]:
        """Yield for every fold the indices of its rows, and schema and detector that were fitted without them."""
        for k, (schema, detector) in enumerate(zip(self.schemas, self.detectors, strict=True)):
            index = np.flatnonzero(numbers % len(self.detectors) == k)
            if len(index):
                yield index, schema, detector

    def scores(self, rows: Rows, encoded: Matrix, numbers: Indices) -> Matrix:
        """Return the scores of rows, each by the detector that was fitted without it."""
        scores = np.empty(len(encoded))
        for index, schema, detector in self._folds(numbers):
            has_own_texts = schema is not self.model.schema_
            part = schema.encode(rows.take(pa.array(index)), BadCells()) if has_own_texts else encoded[index]
            scores[index] = detector.scores(part)
        return scores

    def explain(self, rows: Rows, numbers: Indices) -> Explanation:
        """Return the explanation of rows, each by the detector that was fitted without it."""
        folds = list(self._folds(numbers))
        parts = [make_explanation(rows.take(pa.array(index)), schema, detector) for index, schema, detector in folds]
        order = np.argsort(np.concatenate([index for index, _, _ in folds]))

        def tables(name: str) -> Any:
            # from Python objects: a column of large integers may have another type in each part
            named = [getattr(part, name) for part in parts]
            columns = {c: [v for table in named for v in table[c].to_pylist()] for c in named[0].column_names}
            return same_kind(rows, columns).take(order)

        return Explanation(
            score=np.concatenate([part.score for part in parts])[order],
            contribution_values=np.concatenate([part.contribution_values for part in parts])[order],
            names=self.model.schema_.names,
            **{name: tables(name) for name in ("contributions", "observed", "expected", "reasons", "terms")},
        )


def refitted(model: Model, rows: Matrix, *, seed: int) -> Detector:
    """Return a detector with the settings and units of a model, fitted on other encoded rows."""
    detector = model.detector_
    config = detector.config.replace({"calibration.method": "none"})
    again = Detector.fit(rows, detector.features, config, seed=seed, device=detector.pipeline.reference.device)
    # without calibration the units would be those of training rows, whose terms are too low
    return replace(again, units=detector.units)


def training_parts(
    model: Model, batches: Iterable[pa.RecordBatch], known: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, Indices]]:
    """Yield the training rows of a model in a table, and their numbers; ``known`` selects the columns that it uses."""
    reference = model.detector_.reference
    # a model has a sample of many training rows only: the others cannot be distinguished from new rows
    hashes = row_hashes(reference) if len(reference) == len(model.detector_.held_out_scores) else None
    start = 0
    for batch in batches:
        rows, index = known(batch), np.arange(batch.num_rows)
        if hashes is not None:
            index = np.flatnonzero(np.isin(row_hashes(model.schema_.encode(rows, BadCells())), hashes))
        yield rows.take(pa.array(index)), start + index
        start += batch.num_rows


def _without(schema: Schema, rows: pa.RecordBatch, left_out: Mask) -> Schema:
    """Return the schema as fitted without some of these rows: its text columns count how often a text occurs."""
    text = schema.counted(rows)
    return schema if text is None else text.without(schema.encode(rows, BadCells()), np.flatnonzero(left_out))
