"""The detector: terms, their combination and their calibration, over encoded rows.

The score is the weighted sum of the terms' values in comparable units (see :class:`ptad.calibration.Units`); a
contribution is a column's share of it. Everything here knows terms through :mod:`ptad.terms.base` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ptad.arrays import Indices, Matrix, namespace, on_device, to_numpy
from ptad.calibration import UNIT_GROUPS, Calibration, Units, add_up, held_out_scores, plan_calibration
from ptad.config import Config
from ptad.errors import DataError
from ptad.parallel import in_chunks
from ptad.progress import Reporter, RowsDone, rows_reported
from ptad.reference import Batch, Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, History, Term, TermValues

DEVICE_CHUNK_ROWS = 2**14  # rows at a time on a GPU
REPORTED_ROWS = 2**12  # rows between two reports; as many chunks as a GPU has under way make it coarser there


@dataclass
class Pipeline:
    """Reference rows and fitted terms, before the values of the terms are made comparable."""

    reference: Reference
    terms: list[Term]

    @classmethod
    def fit(cls, rows: Matrix, features: Features, config: Config, context: FitContext) -> Pipeline:
        """Fit every term on the same rows."""
        reference = _reference(rows, features, config, context)
        return cls(reference, [s.term().fit(rows, reference, s, context) for s in config.terms])

    @property
    def batch_size(self) -> int | None:
        """None if rows are scored on their own, else how many are scored together."""
        return next((term.batch_size for term in self.terms if term.batch_size is not None), None)

    def values(self, rows: Matrix, done: RowsDone | None = None) -> Matrix:
        """Return (n, n_terms): the value of every term; ``done`` is told how many rows have theirs."""
        size = REPORTED_ROWS if self.reference.device == "cpu" else 4 * DEVICE_CHUNK_ROWS
        if done is None or self.batch_size is not None or len(rows) <= size:
            return self._values(rows)
        parts = []
        for start in range(0, len(rows), size):  # rows are independent: blocks leave no trace in the values
            parts.append(self._values(rows[start : start + size]))
            done(min(start + size, len(rows)))
        return np.concatenate(parts)

    def _values(self, rows: Matrix) -> Matrix:
        found = np.empty((len(rows), len(self.terms)))
        for terms, chunked in self._groups():

            def stacked(batch: Batch, terms: list[int] = terms) -> Any:
                return namespace(batch.rows).stack([self.terms[i].value(batch) for i in terms], axis=1)

            # On a GPU all chunks are under way before the first is waited for.
            found[:, terms] = np.concatenate([to_numpy(values) for values in self._each(stacked, rows, chunked)])
        return found

    def explain(self, rows: Matrix) -> list[TermValues]:
        """Return what every term says about the columns."""
        _some(rows)
        found: list[TermValues] = [None] * len(self.terms)  # type: ignore[list-item]
        for terms, chunked in self._groups():

            def said(batch: Batch, terms: list[int] = terms) -> list[TermValues]:
                return [_as_numpy(self.terms[i].explain(batch)) for i in terms]

            for i, parts in zip(terms, zip(*self._each(said, rows, chunked), strict=True), strict=True):
                found[i] = _joined(parts)
        return found

    def transform(self, rows: Matrix) -> Matrix:
        """Return the rows as the first term sees them."""
        _some(rows)
        first = self.terms[0]
        return np.concatenate(self._each(lambda batch: to_numpy(first.transform(batch)), rows, first.chunked))

    def _groups(self) -> list[tuple[list[int], bool]]:
        """Return the terms that are evaluated chunk by chunk, on one batch for all, and those that are not."""
        chunked = [i for i, term in enumerate(self.terms) if term.chunked]
        whole = [i for i, term in enumerate(self.terms) if not term.chunked]
        return [(terms, flag) for terms, flag in ((chunked, True), (whole, False)) if terms]

    def _each(self, function: Callable[[Batch], Any], rows: Matrix, chunked: bool) -> list[Any]:
        """Return the function of every chunk of rows."""
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
    units: Units  # what makes the values of the terms comparable
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
        without: Callable[[Matrix, Indices], Matrix] | None = None,
    ) -> Detector:
        """Fit on normal rows and calibrate; the same seed gives the same model on the same machine.

        ``without`` returns all rows as they are encoded without those of a fold, where the encoding counts values.
        """
        if len(rows) < 2:
            raise DataError(f"PTAD needs at least 2 rows to fit on, got n_samples = {len(rows)}. Give it more rows.")
        rng = np.random.default_rng(seed)
        plan = plan_calibration(len(rows), len(features), config.calibration, rng)
        if plan.n_calibration:
            Calibration(np.zeros(plan.n_calibration)).rate(false_alarm_rate)  # refused before the fit, not after

        steps = None if progress is None else progress.step

        def fitted(rows: Matrix, places: Indices, name: str) -> Pipeline:
            folder = None if checkpoint is None else checkpoint / name
            context = FitContext(np.random.default_rng(seed), len(rows), device, steps, folder)
            return Pipeline.fit(rows[np.sort(places)], features, config, context)

        split = progress if len(plan.held_out) == 1 else None  # where there are folds, the folds are reported
        values, groups = np.empty((len(rows), len(config.terms))), np.zeros(len(rows), dtype=np.int64)
        for i, held in enumerate(plan.held_out):
            others = np.ones(len(rows), dtype=bool)
            others[held] = False
            encoded = rows if without is None else without(rows, held)
            pipeline = fitted(encoded, np.flatnonzero(others), f"fold-{i}")
            values[held] = pipeline.values(encoded[held], rows_reported(split, "calibration", plan.n_calibration))
            if progress is not None and len(plan.held_out) > 1:
                progress.stage("calibration", i + 1, len(plan.held_out), "folds")
            groups[held] = i if len(plan.held_out) > 1 else np.arange(len(held)) % UNIT_GROUPS
        if plan.final is not None:
            pipeline = fitted(rows, plan.final, "final")
        held = np.concatenate([*plan.held_out, np.empty(0, dtype=np.int64)])
        return cls._calibrated(config, features, pipeline, len(rows), held, values[held], groups[held])

    @classmethod
    def _calibrated(
        cls,
        config: Config,
        features: Features,
        pipeline: Pipeline,
        n_rows: int,
        held: Indices,
        values: Matrix,
        groups: Indices,
    ) -> Detector:
        """Put together a detector from a pipeline and the values of rows that it was not fitted on."""
        standardised = np.array([term.standardised for term in pipeline.terms])
        scores = np.full(n_rows, np.nan)
        if len(held):
            scores[held], units = held_out_scores(values, groups, standardised, weights_of(config))
            calibration: Calibration | None = Calibration(scores[held])
        else:  # without calibration, units come from the reference rows themselves
            units = Units.of(pipeline.values(pipeline.reference.rows[:1024]), standardised)
            calibration = None
        return cls(config, features, pipeline, units, calibration, scores)

    def update(
        self, rows: Matrix, *, seed: int, false_alarm_rate: float | str, progress: Reporter | None = None
    ) -> Detector:
        """Return a detector that also knows new normal rows: half of them join the reference rows, half calibrate.

        The calibration rows are new ones only: the false-alarm rate is kept for rows like these.
        """
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(rows))
        held = order[: len(rows) // 2]
        Calibration(np.zeros(len(held))).rate(false_alarm_rate)
        train = np.concatenate([self.reference, rows[order[len(held) :]]])
        steps = None if progress is None else progress.step
        context = FitContext(rng, len(train), self.pipeline.reference.device, steps)
        reference = _reference(train, self.features, self.config, context)
        terms = [term.continue_fit(train, reference, context) for term in self.pipeline.terms]
        pipeline = Pipeline(reference, terms)
        groups = np.arange(len(held)) % UNIT_GROUPS
        values = pipeline.values(rows[held], rows_reported(progress, "calibration", len(held)))
        return self._calibrated(self.config, self.features, pipeline, len(rows), held, values, groups)

    @property
    def reference(self) -> Matrix:
        """The training rows that the model keeps, encoded: (n_reference, n_features)."""
        return self.pipeline.reference.rows

    @property
    def weights(self) -> Matrix:
        return weights_of(self.config)

    @property
    def batch_size(self) -> int | None:
        """None if every row is scored on its own, else how many rows are scored together (``paper`` only)."""
        return self.pipeline.batch_size

    @property
    def history(self) -> History:
        """What training said, of all terms that are trained."""
        return [entry for term in self.pipeline.terms for entry in term.history]

    def term_scores(self, rows: Matrix) -> Matrix:
        """Return (n, n_terms): what every term adds to the score."""
        return np.asarray(self.units(self.pipeline.values(_some(rows))) * self.weights)

    def scores(self, rows: Matrix, done: RowsDone | None = None) -> Matrix:
        """Return (n,): the anomaly score, higher for anomalies; ``done`` is told how many rows have theirs."""
        return np.asarray(add_up(self.units(self.pipeline.values(_some(rows), done)), self.weights))

    def recalibrated(self, rows: Matrix, done: RowsDone | None = None) -> Detector:
        """Return the detector with a threshold from these normal rows, which it must not have been fitted on."""
        scores = self.scores(rows, done)
        return replace(self, calibration=Calibration(scores))


def weights_of(config: Config) -> Matrix:
    """Return (n_terms,): the weights of the terms."""
    return np.array([term.weight for term in config.terms])


def sample_rows(rows: Matrix, most: int, rng: np.random.Generator) -> Matrix:
    """Return all rows, or as many as are kept, drawn at random, in their order."""
    return rows if len(rows) <= most else rows[np.sort(rng.permutation(len(rows))[:most])]


def _reference(rows: Matrix, features: Features, config: Config, context: FitContext) -> Reference:
    kept = sample_rows(rows, config.reference.rows, context.rng)
    return Reference(kept, features, config.reference, context.device)


def _some(rows: Matrix) -> Matrix:
    if len(rows) == 0:
        raise DataError("There are 0 rows to score. Give at least one.")
    return rows


def _as_numpy(found: TermValues) -> TermValues:
    return TermValues(**{name: None if v is None else to_numpy(v) for name, v in vars(found).items()})


def _joined(parts: Sequence[TermValues]) -> TermValues:
    def join(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    return TermValues(**{name: join(name) for name in ("value", "shares", "reason", "partner", "expected")})
