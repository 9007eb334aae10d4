"""Conformal calibration: validity, thresholds, and rates that cannot be promised."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptad import PTAD, SettingError
from ptad.scoring import Calibration

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
    alarms = scores > calibration.threshold(calibration.rate(rate))
    assert np.array_equal(alarms, calibration.p_value(scores) <= rate)


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


def test_a_rate_that_cannot_be_promised_is_refused_with_the_reason() -> None:
    message = r"0\.001 cannot be promised from 99 calibration rows: the smallest possible is 1/\(99 \+ 1\) = 0\.01\."
    with pytest.raises(SettingError, match=message) as caught:
        Calibration(np.arange(99.0)).rate(0.001)
    assert "at least 999 calibration rows" in str(caught.value)
    assert Calibration(np.arange(999.0)).rate(0.001) == 0.001


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_outside_its_range(rate: float) -> None:
    with pytest.raises(SettingError, match="false_alarm_rate"):
        Calibration(np.arange(99.0)).rate(rate)


def test_an_unsupported_rate_is_refused_by_fit(make_detector: Make, rows: Rows) -> None:
    with pytest.raises(SettingError, match="cannot be promised from 100 calibration rows"):
        make_detector(parameters={"false_alarm_rate": 0.001}).fit(rows)


def test_the_automatic_rate_of_a_small_table_leaves_a_note(
    make_detector: Make, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"):
        model = make_detector().fit(rows[:20])
    assert model.false_alarm_rate_ == 1 / 21
    assert "the smallest that 20 calibration rows support" in caplog.text


def test_the_rate_changes_without_a_refit(make_detector: Make, rows: Rows) -> None:
    model = make_detector().fit(rows)
    history, before = model.history_, model.anomaly_score(rows)
    for rate in (0.05, 0.2, 0.5):
        assert model.set_false_alarm_rate(rate) is model
        assert model.false_alarm_rate_ == rate == model.get_params()["false_alarm_rate"]
        assert np.array_equal(model.predict(rows) == -1, model.p_value(rows) <= rate)
    assert model.history_ is history and np.array_equal(before, model.anomaly_score(rows))
    with pytest.raises(SettingError):
        model.set_false_alarm_rate(0.0001)
    assert model.false_alarm_rate_ == 0.5  # a refused change changes nothing


def test_without_calibration_there_are_scores_but_no_threshold(make_detector: Make, rows: Rows) -> None:
    model = make_detector(calibration="none").fit(rows)
    assert np.isfinite(model.anomaly_score(rows)).all()
    for method in (model.predict, model.p_value, model.decision_function):
        with pytest.raises(SettingError, match=r"fitted with calibration='none'.*recalibrate"):
            method(rows)
    model.recalibrate(rows[:50])
    assert np.array_equal(np.sort(model.anomaly_score(rows[:50])), model.calibration_.scores)
    assert set(model.predict(rows)) <= {-1, 1}


def test_calibration_rows_were_not_learned_from(make_detector: Make, rows: Rows) -> None:
    """Cross-conformal: every row is judged once, by a member that did not see it."""
    model = make_detector().fit(rows)
    assert len(model.calibration_.scores) == 100
    split = make_detector(calibration="split").fit(rows)
    assert len(split.calibration_.scores) == 20
    reference = split.scorer_.reference_rows.numpy().astype(np.float32)[0]
    judged = set(split.calibration_.scores)
    assert not judged & set(split.scorer_.parts(np.unique(reference, axis=0)).score)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["cross", "split"])
def test_validity_of_whole_fits(make_detector: Make, calibration: str) -> None:
    rng = np.random.default_rng(0)
    p: list[NDArray[np.float64]] = []
    for seed in range(25):
        x = rng.normal(size=(260, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
        model = make_detector(calibration=calibration, parameters={"random_state": seed}).fit(x[:60])
        p.append(model.p_value(x[60:]))
    shares = np.array([[(q <= a).mean() for a in (0.1, 0.3)] for q in p])
    error = 3 * shares.std(axis=0) / np.sqrt(len(p))
    assert (shares.mean(axis=0) <= np.array([0.1, 0.3]) + error).all(), shares.mean(axis=0)
    assert (shares.mean(axis=0) > np.array([0.02, 0.1])).all()  # valid, and not by never alarming
