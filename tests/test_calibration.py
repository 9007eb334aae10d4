"""Conformal calibration: p-values, thresholds, plans, units, and rates that the rows do not support."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptad import PTAD, SettingError
from ptad.calibration import Calibration, Units, add_up, calibration_scores, plan_calibration, rows_needed
from ptad.config import CalibrationSettings

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
few_values = st.lists(st.integers(0, 6), min_size=1, max_size=40)  # with many ties


def test_p_values_by_hand() -> None:
    calibration = Calibration(np.array([3.0, 1.0, 2.0, 2.0]))
    found = calibration.p_value(np.array([0.0, 1.0, 2.0, 2.5, 3.0, 9.0]))
    assert np.allclose(found, np.array([5, 5, 4, 2, 2, 1]) / 5)


@settings(max_examples=300, deadline=None)
@given(few_values, few_values, st.data())
def test_threshold_and_p_value_say_the_same(known: list[int], new: list[int], data: st.DataObject) -> None:
    calibration = Calibration(np.array(known, dtype=float))
    n = len(known)
    exact = st.integers(1, n).map(lambda k: k / (n + 1))
    rate = data.draw(exact | st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-12]))
    if rate < calibration.smallest_rate:
        with pytest.raises(SettingError):
            calibration.rate(rate)
        return
    scores = np.array(new + known, dtype=float)
    flagged = scores > calibration.threshold(calibration.rate(rate))
    assert np.array_equal(flagged, calibration.p_value(scores) <= rate)


@pytest.mark.parametrize("n", [19, 20, 99, 200])
@pytest.mark.parametrize("ties", [False, True])
def test_validity_over_many_splits(n: int, ties: bool) -> None:
    """P(p <= a) <= a for exchangeable rows; without ties it is floor(a (n + 1)) / (n + 1) exactly."""
    rng = np.random.default_rng(n)
    repetitions = 4000
    scores = rng.exponential(size=(repetitions, n + 1))
    if ties:
        scores = np.floor(3 * scores)
    p = np.array([Calibration(s[:-1]).p_value(s[-1:])[0] for s in scores])
    for a in (0.01, 0.05, 0.1, 0.3):
        error = 4 * np.sqrt(a * (1 - a) / repetitions)
        assert (p <= a).mean() <= a + error
        if not ties:
            assert abs((p <= a).mean() - np.floor(a * (n + 1) + 1e-9) / (n + 1)) < error


def test_automatic_rate() -> None:
    assert Calibration(np.arange(99.0)).rate("auto") == 0.01
    assert Calibration(np.arange(500.0)).rate("auto") == 0.01
    assert Calibration(np.arange(19.0)).rate("auto") == 0.05


def test_a_rate_that_the_rows_do_not_support_is_refused_with_the_number_needed() -> None:
    message = r"0\.001 needs at least 999 calibration rows; there are 99, which support 0\.01 at best"
    with pytest.raises(SettingError, match=message):
        Calibration(np.arange(99.0)).rate(0.001)
    assert Calibration(np.arange(999.0)).rate(0.001) == 0.001


@given(st.integers(2, 3000))
def test_as_many_rows_as_are_needed_support_the_rate(n: int) -> None:
    for rate in (1 / n, 0.999 / n):
        needed = rows_needed(rate)
        assert Calibration(np.zeros(needed)).rate(rate) == rate
        with pytest.raises(SettingError):
            Calibration(np.zeros(needed - 1)).rate(rate)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_outside_its_range(rate: float) -> None:
    with pytest.raises(SettingError, match="false_alarm_rate"):
        Calibration(np.arange(99.0)).rate(rate)


# plans


@pytest.mark.parametrize("n", [2, 3, 50, 1000, 4999])
def test_folds_hold_out_every_row_once(n: int) -> None:
    plan = plan_calibration(n, 4, CalibrationSettings(), np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(plan.folds)), np.arange(n)) and plan.n_calibration == n
    assert plan.final is not None and np.array_equal(np.sort(plan.final), np.arange(n))
    assert min(10, n) <= len(plan.folds) <= n
    sizes = [len(fold) for fold in plan.folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("n", "held"), [(5000, 1000), (100_000, 10_000)])
def test_a_split_keeps_a_share_apart_and_fits_once(n: int, held: int) -> None:
    plan = plan_calibration(n, 4, CalibrationSettings(), np.random.default_rng(0))
    assert len(plan.folds) == 1 and plan.n_calibration == held and plan.final is None


def test_without_calibration_nothing_is_held_out() -> None:
    plan = plan_calibration(50, 4, CalibrationSettings(method="none"), np.random.default_rng(0))
    assert plan.folds == [] and plan.n_calibration == 0 and len(plan.final) == 50


# units


def test_units_of_a_row_come_from_other_groups() -> None:
    """However far out a row lies, it does not widen the ruler that it is measured with."""
    rng = np.random.default_rng(0)
    values, groups = rng.normal(size=(40, 3)), np.arange(40) % 4
    flags, weights = np.ones(3, dtype=bool), np.array([1.0, 2.0, 0.5])
    scores, units = calibration_scores(values, groups, flags, weights)
    for group in range(4):
        own = groups == group
        expected = add_up(Units.fit(values[~own], flags)(values[own]), weights)
        assert np.array_equal(scores[own], expected)
    assert np.array_equal(units.mean, values.mean(axis=0))


def test_units_keep_the_order_of_values_and_leave_alone_what_is_not_standardised() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    found = Units.fit(values, np.array([True, False]))(values)
    assert np.array_equal(found[:, 1], values[:, 1])
    order = np.argsort(values[:, 0])
    assert (np.diff(found[order, 0]) > 0.0).all()


def test_units_of_a_term_that_never_varied_are_finite() -> None:
    units = Units.fit(np.full((9, 1), 3.0), np.array([True]))
    assert np.isfinite(units(np.array([[3.0], [1e6]]))).all()


def test_the_sum_is_rounded_to_single_precision() -> None:
    found = add_up(np.random.default_rng(0).normal(size=(20, 5)), np.ones(5))
    assert np.array_equal(found, found.astype(np.float32)) and found.dtype == np.float64


# the public estimator


def test_a_rate_that_the_table_does_not_support_is_refused_by_fit(make_detector: Make, rows: Rows) -> None:
    with pytest.raises(SettingError, match="needs at least 999 calibration rows; there are 100"):
        make_detector(false_alarm_rate=0.001).fit(rows)


def test_the_automatic_rate_of_a_small_table_leaves_a_note(
    make_detector: Make, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"):
        model = make_detector().fit(rows[:20])
    assert model.false_alarm_rate_ == 1 / 21
    assert "the smallest that 20 calibration rows support" in caplog.text


def test_the_rate_changes_without_another_fit(make_detector: Make, rows: Rows) -> None:
    model = make_detector().fit(rows)
    fitted, before = model.detector_, model.anomaly_score(rows)
    for rate in (0.05, 0.2, 0.5):
        assert model.set_false_alarm_rate(rate) is model
        assert model.false_alarm_rate_ == rate == model.get_params()["false_alarm_rate"]
        assert np.array_equal(model.predict(rows) == -1, model.p_value(rows) <= rate)
    assert model.detector_ is fitted and np.array_equal(before, model.anomaly_score(rows))
    with pytest.raises(SettingError):
        model.set_false_alarm_rate(0.0001)
    assert model.false_alarm_rate_ == 0.5 == model.get_params()["false_alarm_rate"]  # a refused change changes nothing


def test_without_calibration_there_are_scores_but_no_threshold(make_detector: Make, rows: Rows) -> None:
    model = make_detector(config={"calibration.method": "none"}).fit(rows)
    assert np.isfinite(model.anomaly_score(rows)).all() and np.isnan(model.held_out_scores_).all()
    for method in (model.predict, model.p_value, model.decision_function):
        with pytest.raises(SettingError, match=r"fitted without calibration.*Recalibrate"):
            method(rows)
