"""The detector: terms, their combination and their calibration, over encoded rows.

The score is the weighted sum of the terms' values in comparable units (see :class:`ptad.calibration.Units`); a
contribution is a column's share of it. Terms are used through :mod:`ptad.terms.base` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ptad.arrays import Indices, Matrix, namespace, on_device, to_numpy
from ptad.calibration import (
    UNIT_GROUPS,
    Calibration,
    Units,
    add_up,
    calibration_scores,
    check_supported,
    plan_calibration,
)
from ptad.config import Config
from ptad.errors import BundleError, DataError
from ptad.parallel import in_chunks
from ptad.progress import Reporter, RowsDone, rows_reported
from ptad.reference import Batch, Reference, max_reference_rows
from ptad.tables.features import Features
from ptad.terms.base import FitContext, History, Term, TermValues, refuse_empty

DEVICE_CHUNK_ROWS = 2**14  # rows at a time on a GPU
REPORTED_ROWS = 2**12  # rows between two reports of progress; on a GPU four chunks, which are computed at once


@dataclass
class Pipeline:
    """Reference rows and fitted terms, before the values of the terms are standardised."""

    reference: Reference
    terms: list[Term]

    @classmethod
    def fit(cls, rows: Matrix, features: Features, config: Config, context: FitContext) -> Pipeline:
        """Fit every term on the same rows."""
        reference = sample_reference(rows, features, config, context)
        return cls(reference, [s.term().fit(rows, reference, s, context) for s in config.terms])

    @property
    def batch_size(self) -> int | None:
        """The number of rows that are scored together; None if every row is scored on its own."""
        return next((term.batch_size for term in self.terms if term.batch_size is not None), None)

    def values(self, rows: Matrix, done: RowsDone | None = None) -> Matrix:
        """Return (n, n_terms): the value of every term; ``done`` is called with the number of finished rows."""
        size = REPORTED_ROWS if self.reference.device == "cpu" else 4 * DEVICE_CHUNK_ROWS
        if done is None or self.batch_size is not None or len(rows) <= size:
            return self._values(rows)
        blocks = []
        for start in range(0, len(rows), size):  # rows are independent: the values do not depend on the blocks
            blocks.append(self._values(rows[start : start + size]))
            done(min(start + size, len(rows)))
        return np.concatenate(blocks)

    def _values(self, rows: Matrix) -> Matrix:
        values = np.empty((len(rows), len(self.terms)))
        for terms, chunked in self._groups():

            def stacked(batch: Batch, terms: list[int] = terms) -> Any:
                return namespace(batch.rows).stack([self.terms[i].value(batch) for i in terms], axis=1)

            # On a GPU all chunks are computed before the first result is waited for.
            values[:, terms] = np.concatenate([to_numpy(x) for x in self._map_chunks(stacked, rows, chunked)])
        return values

    def explain(self, rows: Matrix) -> list[TermValues]:
        """Return the values of every term, attributed to columns."""
        refuse_empty(rows)
        results: dict[int, TermValues] = {}
        for terms, chunked in self._groups():

            def explained(batch: Batch, terms: list[int] = terms) -> list[TermValues]:
                return [_as_numpy(self.terms[i].explain(batch)) for i in terms]

            chunks = self._map_chunks(explained, rows, chunked)
            results |= {i: _concatenated(parts) for i, parts in zip(terms, zip(*chunks, strict=True), strict=True)}
        return [results[i] for i in range(len(self.terms))]

    def transform(self, rows: Matrix) -> Matrix:
        """Return the rows as the first term represents them."""
        refuse_empty(rows)
        first = self.terms[0]
        chunks = self._map_chunks(lambda batch: to_numpy(first.transform(batch)), rows, first.chunked)
        return np.concatenate(chunks)

    def _groups(self) -> list[tuple[list[int], bool]]:
        """Return the terms that share chunks of rows, and those that take all rows at once, with a flag for chunks."""
        chunked = [i for i, term in enumerate(self.terms) if term.chunked]
        whole = [i for i, term in enumerate(self.terms) if not term.chunked]
        return [(terms, flag) for terms, flag in ((chunked, True), (whole, False)) if terms]

    def _map_chunks(self, function: Callable[[Batch], Any], rows: Matrix, chunked: bool) -> list[Any]:
        """Return the results of ``function`` for all chunks of rows, in order."""
        device = self.reference.device
        if not chunked:
            return [function(Batch(rows, self.reference))]
        if device == "cpu":
            return in_chunks(lambda chunk: function(Batch(chunk, self.reference)), rows)
        chunks = (rows[i : i + DEVICE_CHUNK_ROWS] for i in range(0, len(rows), DEVICE_CHUNK_ROWS))
        return [function(Batch(on_device(chunk, device), self.reference)) for chunk in chunks]


@dataclass
class Detector:
    """A fitted model for encoded rows."""

    config: Config
    features: Features
    pipeline: Pipeline
    units: Units  # standardise the values of the terms
    calibration: Calibration | None  # scores of calibration rows
    held_out_scores: Matrix  # (n_rows,), of the training rows by models fitted without them; NaN where there is none

    @classmethod
    def fit(
        cls,
        rows: Matrix,
        features: Features,
        config: Config,
        *,
        seed: int,
        device: str = "cpu",
        false_alarm_rate: float | str = "auto",
        progress: Reporter | None = None,
        checkpoint: Path | None = None,
        encode_without: Callable[[Matrix, Indices], Matrix] | None = None,
    ) -> Detector:
        """Fit on normal rows and calibrate; the same seed gives the same model on the same machine.

        Where the encoding counts values, ``encode_without(rows, fold)`` returns all rows, encoded without counting
        those of a fold.
        """
        if len(rows) < 2:
            raise DataError(f"PTAD needs at least 2 rows to fit on, got n_samples = {len(rows)}. Give it more rows.")
        rng = np.random.default_rng(seed)
        plan = plan_calibration(len(rows), len(features), config.calibration, rng)
        n_folds = len(plan.folds)
        if plan.n_calibration:
            check_supported(false_alarm_rate, plan.n_calibration)  # refused before the fit, not after

        def fit_pipeline(rows: Matrix, train: Indices, name: str) -> Pipeline:
            step = None if progress is None else progress.step
            folder = None if checkpoint is None else checkpoint / name
            context = FitContext(np.random.default_rng(seed), len(rows), device, step, folder)
            return Pipeline.fit(rows[np.sort(train)], features, config, context)

        values, groups = np.empty((len(rows), len(config.terms))), np.zeros(len(rows), dtype=np.int64)
        for i, fold in enumerate(plan.folds):
            encoded = rows if encode_without is None else encode_without(rows, fold)
            pipeline = fit_pipeline(encoded, np.setdiff1d(np.arange(len(rows)), fold), f"fold-{i}")
            if n_folds == 1:
                values[fold] = pipeline.values(encoded[fold], rows_reported(progress, "calibration", len(fold)))
                groups[fold] = np.arange(len(fold)) % UNIT_GROUPS
            else:
                values[fold] = pipeline.values(encoded[fold])
                groups[fold] = i
                if progress is not None:
                    progress.stage("calibration", i + 1, n_folds, "folds")
        if plan.final is not None:
            pipeline = fit_pipeline(rows, plan.final, "final")
        calibration_rows = np.concatenate([*plan.folds, np.empty(0, dtype=np.int64)])
        values, groups = values[calibration_rows], groups[calibration_rows]
        final_values = values
        if plan.final is not None and len(calibration_rows):
            final_values = pipeline.values(rows[calibration_rows])
        return cls._calibrated(
            config, features, pipeline, len(rows), calibration_rows, values, groups, final_values=final_values
        )

    @classmethod
    def _calibrated(
        cls,
        config: Config,
        features: Features,
        pipeline: Pipeline,
        n_rows: int,
        calibration_rows: Indices,
        values: Matrix,
        groups: Indices,
        final_values: Matrix,
    ) -> Detector:
        """Put together a detector from a pipeline and values of calibration rows.

        ``values`` are by pipelines that were fitted without the row, ``final_values`` by the one that scores new rows.
        A calibration row counts with the larger of its two scores. The second one is smaller as a rule, since the row
        finds itself, but many equal rows have nearly the same score in both, and a new row that equals them has exactly
        the second one: if the threshold were a hair below it, all such rows would be flagged.
        """
        standardised = np.array([term.standardised for term in pipeline.terms])
        scores = np.full(n_rows, np.nan)
        if len(calibration_rows):
            scores[calibration_rows], units = calibration_scores(values, groups, standardised, config.weights)
            final_scores = add_up(units(final_values), config.weights)
            calibration: Calibration | None = Calibration(np.maximum(scores[calibration_rows], final_scores))
        else:  # without calibration, units come from the reference rows themselves
            units = Units.fit(pipeline.values(pipeline.reference.rows[:1024]), standardised)
            calibration = None
        return cls(config, features, pipeline, units, calibration, scores)

    def update(
        self, rows: Matrix, *, seed: int, false_alarm_rate: float | str, progress: Reporter | None = None
    ) -> Detector:
        """Return a detector updated with new normal rows: half of them join the reference rows, half calibrate.

        The calibration rows are new ones only: the false-alarm rate holds for rows like these.
        """
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(rows))
        calibration_rows, others = order[: len(rows) // 2], order[len(rows) // 2 :]
        check_supported(false_alarm_rate, len(calibration_rows))
        train = np.concatenate([self.reference, rows[others]])
        step = None if progress is None else progress.step
        context = FitContext(rng, len(train), self.pipeline.reference.device, step)
        reference = sample_reference(train, self.features, self.config, context)
        terms = [term.continue_fit(train, reference, context) for term in self.pipeline.terms]
        pipeline = Pipeline(reference, terms)
        groups = np.arange(len(calibration_rows)) % UNIT_GROUPS
        done = rows_reported(progress, "calibration", len(calibration_rows))
        values = pipeline.values(rows[calibration_rows], done)
        return self._calibrated(
            self.config, self.features, pipeline, len(rows), calibration_rows, values, groups, final_values=values
        )

    @property
    def reference(self) -> Matrix:
        """The encoded reference rows, (n_reference, n_features)."""
        return self.pipeline.reference.rows

    @property
    def batch_size(self) -> int | None:
        """The number of rows that are scored together (``paper`` only); None if every row is scored on its own."""
        return self.pipeline.batch_size

    @property
    def history(self) -> History:
        """Entries of the training loops of all terms that are trained."""
        return [entry for term in self.pipeline.terms for entry in term.history]

    def term_scores(self, rows: Matrix) -> Matrix:
        """Return (n, n_terms): the contribution of every term to the score."""
        refuse_empty(rows)
        return np.asarray(self.units(self.pipeline.values(rows)) * self.config.weights)

    def scores(self, rows: Matrix, done: RowsDone | None = None) -> Matrix:
        """Return (n,): the anomaly score, higher for anomalies; ``done`` is called with the number of finished rows."""
        refuse_empty(rows)
        scores = np.asarray(add_up(self.units(self.pipeline.values(rows, done)), self.config.weights))
        check_scores(scores)
        return scores

    def recalibrated(self, rows: Matrix, done: RowsDone | None = None) -> Detector:
        """Return the detector with a threshold from normal rows that it was not fitted on."""
        return replace(self, calibration=Calibration(self.scores(rows, done)))


def check_scores(scores: Matrix) -> None:
    """Raise if a score is not finite: no fit gives such a model, but weights in a file may be any numbers."""
    if not np.isfinite(scores).all():
        raise BundleError("The model is damaged: its scores are not finite. Restore it or fit again.")


def sample_reference(rows: Matrix, features: Features, config: Config, context: FitContext) -> Reference:
    """Return the reference rows of a fit: all rows, or as many as a model keeps, drawn at random, in their order."""
    max_rows = min(config.reference.rows, max_reference_rows(features, DataError))
    if len(rows) > max_rows:
        rows = rows[np.sort(context.rng.permutation(len(rows))[:max_rows])]
    return Reference(rows, features, config.reference, context.device)


def _as_numpy(values: TermValues) -> TermValues:
    return TermValues(**{name: None if x is None else to_numpy(x) for name, x in vars(values).items()})


def _concatenated(parts: Sequence[TermValues]) -> TermValues:
    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return TermValues(**{name: join(name) for name in vars(parts[0])})
