"""Scores for the table that a model was fitted on.

A model that compares rows with reference rows finds a training row among them, and its score is far too low. So the
table is cut into folds, and each is scored and explained by a detector that was fitted without its rows; threshold and
p-values stay those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.detector import Detector
from ptad.devices import resolve_device
from ptad.estimator import PTAD
from ptad.explanation import Explanation, make_explanation
from ptad.jobs.training_table import row_hashes
from ptad.tables import BadCells

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

N_FOLDS = 5


class Scorer:
    """Scores and explains rows of a table, which are known by their numbers, with one model."""

    def __init__(self, model: PTAD) -> None:
        self.model = model

    def scores(self, encoded: Array, numbers: Numbers) -> Array:
        """Return the scores of encoded rows."""
        return self.model.detector_.scores(encoded)

    def explain(self, rows: pa.RecordBatch | pa.Table, numbers: Numbers) -> Explanation:
        """Return the explanation of rows."""
        return make_explanation(rows, self.model.schema_, self.model.detector_)


class CrossFit(Scorer):
    """Scores and explains the rows of a training table; row i belongs to fold i modulo the number of folds."""

    def __init__(self, model: PTAD, detectors: list[Detector]) -> None:
        super().__init__(model)
        self.detectors = detectors

    @classmethod
    def fit(cls, model: PTAD, parts: Iterable[tuple[Array, Numbers]], *, n_folds: int = N_FOLDS) -> Scorer:
        """Fit a detector without each fold.

        Parameters
        ----------
        model : PTAD
            The model, whose settings and units are used.
        parts : iterable of (rows, numbers)
            Encoded training rows and their numbers in the table, batch by batch. Of many, a sample is kept: about as
            many for each detector as the model keeps as reference rows.
        """
        most = model.config_.reference.rows * n_folds // (n_folds - 1)
        rows, numbers = _sampled(parts, most)
        if model.history_ or len(rows) < 2 * n_folds:
            return Scorer(model)  # what is trained for minutes is not trained five times over
        detector, device = model.detector_, resolve_device(model.device)
        config = detector.config.replace({"calibration.method": "none"})
        fitted = [
            Detector.fit(rows[numbers % n_folds != k], detector.features, config, seed=k, device=device)
            for k in range(n_folds)
        ]
        # without calibration the units would come from rows that were fitted on, where terms look too good
        return cls(model, [replace(found, units=detector.units) for found in fitted])

    def scores(self, encoded: Array, numbers: Numbers) -> Array:
        """Return the scores of encoded rows, each by the detector that was fitted without it."""
        found = np.empty(len(encoded))
        for k, detector in enumerate(self.detectors):
            own = numbers % len(self.detectors) == k
            if own.any():
                found[own] = detector.scores(encoded[own])
        return found

    def explain(self, rows: pa.RecordBatch | pa.Table, numbers: Numbers) -> Explanation:
        """Return the explanation of rows, each by the detector that was fitted without it."""
        places: list[Numbers] = []
        parts: list[Explanation] = []
        for k, detector in enumerate(self.detectors):
            own = np.flatnonzero(numbers % len(self.detectors) == k)
            if len(own):
                places.append(own)
                parts.append(make_explanation(rows.take(pa.array(own)), self.model.schema_, detector))
        order = np.argsort(np.concatenate(places))

        def tables(name: str) -> Any:
            return pa.concat_tables([getattr(part, name) for part in parts], promote_options="permissive").take(order)

        return Explanation(
            score=np.concatenate([part.score for part in parts])[order],
            contribution_values=np.concatenate([part.contribution_values for part in parts])[order],
            names=self.model.schema_.names,
            **{name: tables(name) for name in ("contributions", "observed", "expected", "reasons", "terms")},
        )


def training_parts(
    model: PTAD, batches: Iterable[pa.RecordBatch], known: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[tuple[Array, Numbers]]:
    """Yield the training rows among those of a table that holds them, encoded, and their numbers.

    Parameters
    ----------
    model : PTAD
        The model, which was fitted on them.
    batches : iterable of RecordBatch
        The table.
    known : callable
        Drops the columns that are not for the model.
    """
    reference = model.detector_.reference
    # of many training rows a model keeps some only: the others cannot be told from new ones
    hashes = row_hashes(reference) if len(reference) == len(model.held_out_scores_) else None
    start = 0
    for batch in batches:
        encoded = model.schema_.encode(known(batch), BadCells())
        rows = np.arange(len(encoded)) if hashes is None else np.flatnonzero(np.isin(row_hashes(encoded), hashes))
        yield encoded[rows], start + rows
        start += len(encoded)


def _sampled(parts: Iterable[tuple[Array, Numbers]], most: int) -> tuple[Array, Numbers]:
    """Return at most so many rows, drawn at random whatever the batches, in the order of the table."""
    rng = np.random.default_rng(0)
    kept: list[tuple[Array, Numbers, Array]] = []
    for rows, numbers in parts:
        kept.append((rows, numbers, rng.random(len(rows))))
        if sum(len(part[2]) for part in kept) > 2 * most:
            kept = [_smallest(kept, most)]
    if not kept:
        return np.empty((0, 0)), np.empty(0, dtype=np.int64)
    rows, numbers, _ = _smallest(kept, most)
    return rows, numbers


def _smallest(parts: list[tuple[Array, Numbers, Array]], most: int) -> tuple[Array, Numbers, Array]:
    """Put the parts together, and keep the rows with the smallest draws."""
    rows, numbers, draws = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    places = np.sort(np.argsort(draws, kind="stable")[:most])
    return rows[places], numbers[places], draws[places]
