"""Split, scaling, metrics: the rules that make a comparison fair."""

from __future__ import annotations

import numpy as np
import pytest

from ptad.benchmark.encoding import one_hot, one_hot_columns, scale_columns
from ptad.benchmark.loading import cap_split, duplicate_share, half_split
from ptad.benchmark.metrics import average_precision_at, evaluate, observed_false_alarms
from ptad.errors import DataError, SettingError
from ptad.tables.features import Features


@pytest.mark.parametrize("n_normal", [10, 11])
def test_split_halves_the_normal_rows(n_normal: int) -> None:
    y = np.zeros(n_normal + 4, dtype=bool)
    y[[0, 3, 5, 9]] = True
    split = half_split(y, seed=0)
    assert len(split.train) == n_normal // 2
    assert not y[split.train].any()
    assert y[split.test].sum() == 4
    assert sorted([*split.train, *split.test]) == list(range(len(y)))


def test_split_is_random_and_changes_with_the_seed() -> None:
    y = np.zeros(200, dtype=bool)
    first, second = half_split(y, 0).train, half_split(y, 1).train
    assert not np.array_equal(first, np.arange(100))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, half_split(y, 0).train)
    assert 30 < len(np.intersect1d(first, second)) < 70
    with pytest.raises(DataError, match="2 normal rows"):
        half_split(np.array([True, False]), 0)


def test_caps_keep_the_prevalence() -> None:
    y = np.arange(1000) < 100
    split = cap_split(half_split(y, 0), y, 0, max_train=50, max_test=110)
    assert len(split.train) == 50 and not y[split.train].any()
    assert len(split.test) == 110
    assert y[split.test].sum() == 20  # 100 of 550 test rows are anomalies
    rare = np.arange(1000) < 2
    assert rare[cap_split(half_split(rare, 0), rare, 0, None, 20).test].sum() == 1


def test_share_of_duplicate_rows() -> None:
    X = np.array([[1.0, 2.0]] * 5 + [[float(i), 0.0] for i in range(5)], dtype=np.float32)
    y = np.zeros(10, dtype=bool)
    split = half_split(y, 0)
    found = [any(np.array_equal(X[i], X[j]) for j in split.train) for i in split.test]
    assert duplicate_share(X, y, split) == pytest.approx(np.mean(found))
    assert 0 < np.mean(found) < 1


def test_scaling_is_fitted_on_training_rows_only() -> None:
    train = np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32)
    test = np.array([[4.0, 7.0], [-2.0, 5.0]], dtype=np.float32)
    scaled_train, scaled_test = scale_columns(train, test, "minmax")
    assert scaled_train.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    # Beyond the training range on both sides; the constant column is only shifted.
    assert scaled_test.tolist() == [[2.0, 2.0], [-1.0, 0.0]]
    scaled_train, scaled_test = scale_columns(train, test, "standard")
    assert scaled_train[:, 0].tolist() == [-1.0, 1.0]
    assert scaled_test.tolist() == [[3.0, 2.0], [-3.0, 0.0]]
    assert scale_columns(train, test, "own")[0] is train
    with pytest.raises(SettingError, match="standard, minmax"):
        scale_columns(train, test, "robust")


def test_gaps_get_the_median_of_training_rows() -> None:
    gap = float("nan")
    train = np.array([[1.0, gap], [gap, gap], [2.0, gap], [9.0, gap]], dtype=np.float32)
    test = np.array([[gap, 5.0]], dtype=np.float32)
    filled, rows = scale_columns(train, test, "own")
    assert filled.tolist() == [[1, 0], [2, 0], [2, 0], [9, 0]] and rows.tolist() == [[2, 5]]
    assert np.isnan(train[1, 0]) and scale_columns(filled, rows, "own")[0] is filled


def test_one_hot() -> None:
    features = Features(np.array([0, 1, 2]), np.array([0, 3, 0]))
    rows = np.array([[0.5, 2.0, 7.0], [np.nan, np.nan, 8.0], [1.0, 3.0, np.nan]])  # code 3 is an unseen category
    table = one_hot(rows, features, indicators=True)
    assert table[:, 2:5].tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert table[0, :2].tolist() == [0.5, 7.0] and np.isnan(table[1, 0]) and np.isnan(table[2, 1])
    assert table[:, 5:].tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert one_hot_columns(features).tolist() == [0, 2, 1, 1, 1]


def test_observed_false_alarms() -> None:
    y = np.array([False] * 100 + [True] * 50)
    p_values = np.concatenate([np.arange(1, 101) / 100, np.zeros(50)])
    found = observed_false_alarms(y, p_values, 99)
    assert found == {"false_alarms_1": 0.01, "false_alarms_5": 0.05, "false_alarms_10": 0.1}
    assert observed_false_alarms(y, p_values, 98)["false_alarms_1"] is None


def test_average_precision_at_equals_resampling() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) < 100
    scores = rng.normal(size=400) + 1.5 * y
    own = average_precision_at(y, scores, 0.25)
    assert own == pytest.approx(evaluate(y, scores)["auc_pr"])
    # 100 copies of every normal row and one of every anomaly: a prevalence of 100 / 30100.
    copies_y = np.concatenate([y[y], np.repeat(y[~y], 100)])
    copies = np.concatenate([scores[y], np.repeat(scores[~y], 100)])
    expected = evaluate(copies_y, copies)["auc_pr"]
    assert average_precision_at(y, scores, 100 / 30100) == pytest.approx(expected)


def test_metrics_of_a_perfect_and_a_broken_ranking() -> None:
    y = np.array([False, False, True])
    figures = evaluate(y, np.array([0.1, 0.2, 0.9]))
    assert figures["auc_pr"] == figures["auc_roc"] == figures["auc_pr_at_1"] == 1.0
    assert figures["prevalence"] == pytest.approx(1 / 3)
    with pytest.raises(DataError, match="1 of 3 scores are not finite"):
        evaluate(y, np.array([0.1, np.nan, 0.9]))
    with pytest.raises(DataError, match="3 rows"):
        evaluate(y, np.array([0.1, 0.9]))
