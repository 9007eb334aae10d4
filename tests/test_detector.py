"""The detector: held-out scores are those of pipelines fitted without the rows, and nothing else enters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad import DataError
from ptad.calibration import Units, add_up, plan_calibration
from ptad.config import Config, make_config
from ptad.detector import Detector, Pipeline, sample_reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext

Matrix = NDArray[np.float64]
FEATURES = Features(np.array([0, 1, 2, 3]), np.array([0, 0, 3, 0]))


def rows_of(n: int, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    rows[:, 2], rows[:, 3] = rng.integers(3, size=n), rows[:, 0] + 0.1 * rows[:, 3]
    rows[rng.random(n) < 0.1, 1] = np.nan
    return rows


def few_folds() -> Config:
    return make_config("default", {"calibration.folds": 4, "calibration.most_folds": 4})


def fit_without(rows: Matrix, held: NDArray[np.int64], config: Config, seed: int) -> Pipeline:
    """Fit a pipeline on all rows but some, as a fold does."""
    others = np.setdiff1d(np.arange(len(rows)), held)
    return Pipeline.fit(rows[others], FEATURES, config, FitContext(np.random.default_rng(seed), len(rows)))


def test_held_out_scores_are_those_of_a_fit_without_the_row() -> None:
    """Scaling, ranks, categories, reference rows, counts and units: a fold knows nothing of the rows it scores."""
    rows, config = rows_of(80), few_folds()
    detector = Detector.fit(rows, FEATURES, config, seed=3)
    plan = plan_calibration(80, 4, config.calibration, np.random.default_rng(3))
    values = np.empty((80, len(config.terms)))
    for held in plan.folds:
        values[held] = fit_without(rows, held, config, 3).values(rows[held])
    flags = np.array([term.standardised for term in detector.pipeline.terms])
    for held in plan.folds:
        others = np.setdiff1d(np.arange(80), held)
        expected = add_up(Units.fit(values[others], flags)(values[held]), detector.config.weights)
        assert np.array_equal(detector.held_out_scores[held], expected)
    assert np.array_equal(detector.calibration.scores, np.sort(detector.held_out_scores))


def test_many_categories_leave_room_for_fewer_reference_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptad.reference.MAX_CATEGORY_CELLS", 80)
    monkeypatch.setattr("ptad.reference.NEIGHBOUR_ROWS", 4)
    rows = (np.arange(30) % 2.0)[:, None]
    for n_categories, n_reference in ((2, 30), (10, 8), (20, 4)):
        detector = Detector.fit(rows, Features(np.array([0]), np.array([n_categories])), few_folds(), seed=0)
        assert len(detector.reference) == n_reference
    with pytest.raises(DataError, match="21 categories in all; at most 20 can be compared"):
        Detector.fit(rows, Features(np.array([0]), np.array([21])), few_folds(), seed=0)


@pytest.mark.parametrize("change", ["value", "category", "missing"])
def test_the_fold_that_holds_a_row_out_does_not_notice_its_change(change: str) -> None:
    rows, config = rows_of(80), few_folds()
    plan = plan_calibration(80, 4, config.calibration, np.random.default_rng(3))
    held = plan.folds[1]
    changed = rows.copy()
    changed[held[0], {"value": 0, "category": 2, "missing": 1}[change]] = {"value": 99.0, "category": 1.0}.get(
        change, np.nan
    )
    first, second = (fit_without(x, held, config, 3).values(rows[held[1:]]) for x in (rows, changed))
    assert np.array_equal(first, second)


def test_all_folds_are_measured_with_the_ruler_of_the_whole_table() -> None:
    rows, config = rows_of(60), few_folds()
    seen: list[int] = []
    original = config.terms[0].term().fit.__func__

    def spy(cls, rows, reference, settings, context):  # type: ignore[no-untyped-def]
        seen.append(context.n_rows)
        return original(cls, rows, reference, settings, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.terms[0].term(), "fit", classmethod(spy))
        Detector.fit(rows, FEATURES, config, seed=0)
    assert seen == [60] * 5


def test_a_split_scores_new_rows_with_the_pipeline_that_scored_the_calibration_rows() -> None:
    rows = rows_of(100)
    config = make_config("default", {"calibration.method": "split"})
    detector = Detector.fit(rows, FEATURES, config, seed=0)
    held = np.isfinite(detector.held_out_scores)
    assert held.sum() == 20 and len(detector.reference) == 80
    kept = {row.tobytes() for row in detector.reference}
    assert not any(row.tobytes() in kept for row in rows[held])


def test_scores_are_the_weighted_sum_of_the_terms() -> None:
    detector = Detector.fit(rows_of(60), FEATURES, few_folds(), seed=0)
    new = rows_of(30, 1)
    terms = detector.term_scores(new)
    assert terms.shape == (30, len(detector.config.terms))
    assert np.allclose(terms.sum(axis=1), detector.scores(new), rtol=1e-6, atol=1e-6)


def test_the_same_seed_gives_the_same_detector_and_another_another() -> None:
    rows, config = rows_of(80), make_config("default", {"reference.rows": 30, "calibration.most_folds": 10})
    first, again, other = (Detector.fit(rows, FEATURES, config, seed=s) for s in (0, 0, 1))
    assert np.array_equal(first.reference, again.reference, equal_nan=True)
    assert np.array_equal(first.held_out_scores, again.held_out_scores)
    assert not np.array_equal(first.reference, other.reference, equal_nan=True)


def test_reference_rows_are_drawn_without_repetition_and_keep_their_order() -> None:
    rows, context = np.arange(50.0)[:, None], FitContext(np.random.default_rng(0), 50)
    for most in (20, 50):
        config = make_config("default", {"reference.rows": most})
        kept = sample_reference(rows, Features.numeric(1), config, context).rows
        assert len(kept) == most and (np.diff(kept[:, 0]) > 0).all()


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="at least 2 rows"):
        Detector.fit(rows_of(1), FEATURES, few_folds(), seed=0)
    with pytest.raises(DataError, match="0 rows to score"):
        Detector.fit(rows_of(9), FEATURES, few_folds(), seed=0).scores(rows_of(0))
