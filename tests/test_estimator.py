"""The estimator: parameters, tables of every library, and how a fitted detector treats its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ptad import PTAD, Config, DataError, SettingError
from ptad.config import make_config
from ptad.tables import BadCellsWarning

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "best"}, "There is no preset 'best'. Choose one of: default, paper."),
        ({"preset": ["default"]}, "There is no preset ['default']. Choose one of: default, paper."),
        ({"false_alarm_rate": 1.5}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"false_alarm_rate": 0}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"false_alarm_rate": "low"}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"false_alarm_rate": None}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"false_alarm_rate": True}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"config": 3}, "The 'config' parameter of PTAD must be"),
        ({"types": "numeric"}, "The 'types' parameter of PTAD must be"),
        ({"device": 0}, "The 'device' parameter of PTAD must be"),
        ({"verbose": -1}, "The 'verbose' parameter of PTAD must be"),
        ({"verbose": "no"}, "The 'verbose' parameter of PTAD must be"),
        ({"random_state": "x"}, "The 'random_state' parameter of PTAD must be"),
        ({"random_state": -1}, "The 'random_state' parameter of PTAD must be"),
        ({"config": {"reference.rows": 0}}, "The setting 'reference.rows' must be a whole number, at least 2"),
        ({"config": {"rows": 1}}, "There is no setting 'rows'."),
        ({"config": {3: 1}}, "There is no setting '3'."),
    ],
    ids=str,
)
def test_parameters_are_checked_in_fit(rows: Rows, parameters: dict[str, Any], message: str) -> None:
    model = PTAD(**parameters)  # stored untouched
    assert all(model.get_params()[name] is value for name, value in parameters.items())
    with pytest.raises(SettingError) as caught:
        model.fit(rows)
    assert message in str(caught.value)
    with pytest.raises(NotFittedError):
        model.anomaly_score(rows)


@pytest.mark.parametrize("state", [0, np.int64(3), None, np.random.RandomState(0)], ids=str)
def test_every_way_to_name_a_seed(rows: Rows, state: Any) -> None:
    assert np.isfinite(PTAD(random_state=state, verbose=0).fit(rows).anomaly_score(rows)).all()


def test_a_device_that_is_not_there(rows: Rows) -> None:
    with pytest.raises(SettingError, match="The device 'abacus' cannot be used: there is no such device"):
        PTAD(device="abacus").fit(rows)


def test_a_whole_config_can_be_given(rows: Rows, detector: PTAD) -> None:
    config = make_config("default")
    model = PTAD("paper", config=config, verbose=0).fit(rows)
    assert isinstance(model.config_, Config) and model.config_ is config
    assert np.array_equal(model.anomaly_score(rows), detector.anomaly_score(rows))


def test_what_a_fit_leaves(detector: PTAD, frame_detector: PTAD) -> None:
    assert detector.n_features_in_ == 4 and not hasattr(detector, "feature_names_in_")
    assert list(frame_detector.feature_names_in_) == ["a", "b", "colour", "c"]
    assert detector.false_alarm_rate_ == 0.01 and np.isfinite(detector.offset_)
    assert detector.config_ == make_config("default") and len(detector.schema_.features) == 4
    assert detector.held_out_scores_.shape == (100,) and np.isfinite(detector.held_out_scores_).all()
    assert detector.history_ == []  # nothing is trained


def test_the_same_seed_gives_the_same_model(
    make_detector: Make, rows: Rows, detector: PTAD, same_parameters: Callable[[PTAD, PTAD], bool]
) -> None:
    again = make_detector().fit(rows)
    assert same_parameters(again, detector) and again.offset_ == detector.offset_
    assert np.array_equal(again.held_out_scores_, detector.held_out_scores_)


def test_a_larger_table_keeps_a_sample_of_its_rows(make_detector: Make, rows: Rows) -> None:
    model = make_detector(config={"reference.rows": 30}).fit(rows)
    kept = {row.tobytes() for row in model.detector_.reference}
    assert len(kept) == 30 and kept <= {row.tobytes() for row in rows}
    assert np.isfinite(model.anomaly_score(rows)).all() and (model.predict(rows) == 1).mean() > 0.9


@pytest.mark.parametrize(
    "method",
    [
        "anomaly_score",
        "score_samples",
        "decision_function",
        "predict",
        "p_value",
        "term_scores",
        "transform",
        "explain",
    ],
)
def test_not_fitted(rows: Rows, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(PTAD(), method)(rows)


def test_refused_input(detector: PTAD, rows: Rows) -> None:
    with pytest.raises(ValueError, match="X has 3 features, but PTAD is expecting 4 features as input"):
        detector.predict(rows[:, :3])
    with pytest.raises(ValueError, match="Expected 2D array"):
        detector.predict(rows[0])
    with pytest.raises(ValueError, match="There are 0 rows to score"):
        detector.predict(rows[:0])
    with pytest.raises(SettingError, match=r"'auto' or a number between 0 and 1\. Got 'low'"):
        detector.set_false_alarm_rate("low")
    with pytest.raises(DataError, match="Duplicate column names: 'a'"):
        PTAD().fit(pd.DataFrame(rows, columns=["a", "b", "a", "c"]))
    with pytest.raises(DataError, match="infinity"):
        detector.predict(np.where(rows > 2, np.inf, rows))


def test_a_cell_that_cannot_be_read_counts_as_missing_with_one_warning(
    frame_detector: PTAD, frame: pd.DataFrame
) -> None:
    bad, gap = frame.head(6).astype({"a": object}), frame.head(6).copy()
    bad.loc[2, "a"], gap.loc[2, "a"] = "abc", np.nan
    for method in ("anomaly_score", "predict", "p_value", "term_scores", "transform", "explain"):
        with pytest.warns(
            BadCellsWarning, match=r"1 cell .*'a' \(1\); .*row 2 \(counted from 0\): not a number"
        ) as found:
            getattr(frame_detector, method)(bad)
        assert len(found) == 1 and found[0].filename == __file__
    with pytest.warns(BadCellsWarning):
        scores = frame_detector.anomaly_score(bad)
        explanation = frame_detector.explain(bad)
    assert np.array_equal(scores, frame_detector.anomaly_score(gap)) and np.array_equal(explanation.score, scores)
    assert explanation.reasons["a"][2] == "not a number: 'abc'" and np.isnan(explanation.observed["a"][2])
    assert explanation.observed["a"].drop(2).tolist() == frame["a"].head(6).drop(2).tolist()


def test_strict_refuses_a_cell_that_cannot_be_read(make_detector: Any, frame: pd.DataFrame) -> None:
    strict = make_detector(strict=True).fit(frame)
    bad = frame.astype({"a": object})
    bad.loc[2, "a"] = "abc"
    for call in (strict.predict, strict.explain, strict.recalibrate, make_detector(strict=True).fit):
        with pytest.raises(DataError, match=r"'a', row 2 \(counted from 0\): 'abc' is not a number.*strict"):
            call(bad)
    with pytest.warns(BadCellsWarning):
        fitted = make_detector().fit(bad)
    assert fitted.schema_.types["a"] == "numeric"
    with pytest.raises(SettingError, match="'strict'"):
        make_detector(strict="yes").fit(frame)


def test_an_empty_frame_is_refused_in_words(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"(?i)\b(0|no) (sample|row)"):
        frame_detector.anomaly_score(frame.head(0))


def test_a_missing_column_is_named_and_shuffled_ones_are_put_in_order(
    frame_detector: PTAD, frame: pd.DataFrame
) -> None:
    scores = frame_detector.anomaly_score(frame)
    assert np.array_equal(frame_detector.anomaly_score(frame[["colour", "c", "b", "a"]]), scores)
    with pytest.raises(DataError, match="colour"):
        frame_detector.anomaly_score(frame[["a", "b", "c"]])


def test_pandas_polars_and_arrow_are_alike(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    scores = frame_detector.anomaly_score(frame)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    assert np.array_equal(frame_detector.anomaly_score(arrow), scores)
    assert np.array_equal(frame_detector.anomaly_score(pl.from_arrow(arrow)), scores)


def test_an_unseen_category_raises_the_score(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    table = frame.copy()
    table["colour"] = "ultraviolet"
    assert np.median(frame_detector.anomaly_score(table)) > np.median(frame_detector.anomaly_score(frame))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool, object])
def test_dtypes(make_detector: Make, rows: Rows, dtype: type) -> None:
    x = (rows * 3).round() if dtype is not bool else rows > 0
    expected = make_detector().fit(x.astype(np.float64)).anomaly_score(x.astype(np.float64))
    y = x.astype(dtype)
    assert np.array_equal(make_detector().fit(y).anomaly_score(y), expected)


def test_lists_and_memory_order(detector: PTAD, rows: Rows) -> None:
    scores = detector.anomaly_score(rows)
    assert np.array_equal(detector.anomaly_score(rows.tolist()), scores)
    assert np.array_equal(detector.anomaly_score(np.asfortranarray(rows)), scores)
    read_only = rows.copy()
    read_only.setflags(write=False)
    assert np.array_equal(detector.anomaly_score(read_only), scores)


def test_input_is_left_untouched(make_detector: Make, rows: Rows) -> None:
    x = rows.copy()
    x[3, 1] = np.nan
    before = x.copy()
    make_detector().fit(x).explain(x)
    assert np.array_equal(x, before, equal_nan=True)


def test_a_constant_table(make_detector: Make) -> None:
    model = make_detector().fit(np.ones((20, 3)))
    assert np.isfinite(model.anomaly_score(np.ones((2, 3)))).all()


def test_one_column(make_detector: Make, rows: Rows) -> None:
    model = make_detector().fit(rows[:, :1])
    assert model.anomaly_score([[30.0]])[0] > np.median(model.anomaly_score(rows[:, :1]))
    gaps = rows[:, :1].copy()
    gaps[::10] = np.nan
    assert np.isfinite(make_detector().fit(gaps).anomaly_score(gaps)).all()
    assert np.isfinite(model.anomaly_score(gaps)).all()


def test_two_rows(make_detector: Make) -> None:
    model = make_detector().fit([[1.0, 2.0], [3.0, 4.0]])
    assert np.isfinite(model.anomaly_score([[1.0, 2.0], [9.0, np.nan]])).all()
    assert model.false_alarm_rate_ == pytest.approx(1 / 3)


def test_a_refused_rate_leaves_no_half_fitted_detector(make_detector: Make, rows: Rows) -> None:
    model = make_detector(false_alarm_rate=0.0001)
    with pytest.raises(SettingError):
        model.fit(rows)
    with pytest.raises(NotFittedError):
        model.anomaly_score(rows)


def test_blocks_of_a_large_array_leave_no_trace(
    detector: PTAD, rows: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = detector.anomaly_score(rows)
    monkeypatch.setattr("ptad.model.BLOCK_ROWS", 7)
    assert np.array_equal(detector.anomaly_score(rows), whole)


# signs: which end of every method is anomalous

FAR = np.array([[40.0, -40.0, 40.0, -40.0]])


def test_anomaly_score_is_higher_for_anomalies(detector: PTAD, rows: Rows) -> None:
    assert detector.anomaly_score(FAR)[0] > detector.anomaly_score(rows).max()


def test_score_samples_is_the_negated_anomaly_score(detector: PTAD, rows: Rows) -> None:
    assert np.array_equal(detector.score_samples(rows), -detector.anomaly_score(rows))


def test_decision_function_is_negative_for_anomalies(detector: PTAD, rows: Rows) -> None:
    assert detector.decision_function(FAR)[0] < 0 < np.median(detector.decision_function(rows))
    assert np.array_equal(detector.decision_function(rows), detector.score_samples(rows) - detector.offset_)


def test_predict_is_minus_one_for_anomalies(detector: PTAD, rows: Rows) -> None:
    assert detector.predict(FAR).tolist() == [-1] and (detector.predict(rows) == 1).mean() > 0.9
    assert np.array_equal(detector.predict(rows) == -1, detector.p_value(rows) <= detector.false_alarm_rate_)


def test_p_value_is_small_for_anomalies(detector: PTAD, rows: Rows) -> None:
    assert detector.p_value(FAR)[0] == pytest.approx(1 / 101) and np.median(detector.p_value(rows)) > 0.3


def test_term_scores_add_up_to_the_score(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    terms = frame_detector.term_scores(frame)
    assert list(terms.columns) == [term.title() for term in frame_detector.config_.terms]
    assert np.allclose(terms.sum(axis=1), frame_detector.anomaly_score(frame), rtol=1e-6, atol=1e-6)


def test_a_weight_scales_what_a_term_adds(make_detector: Make, rows: Rows, detector: PTAD) -> None:
    weight = detector.config_.terms[0].weight
    twice = make_detector(config={"local_reconstruction.weight": 2.0 * weight}).fit(rows)
    first, second = (np.asarray(model.term_scores(rows)["local_reconstruction"]) for model in (detector, twice))
    assert np.allclose(second, 2.0 * first)
    without = make_detector(config={"local_reconstruction.weight": 0.0}).fit(rows)
    assert not np.any(without.term_scores(rows)["local_reconstruction"])


def test_transform_gives_named_residuals_per_column(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    residuals = frame_detector.transform(frame)
    names = frame_detector.get_feature_names_out()
    assert names.tolist() == ["residual_a", "residual_b", "residual_colour", "residual_c"]
    assert residuals.shape == (100, 4) and (residuals >= 0.0).all()
    odd = frame.head(5).copy()
    odd["c"] = 50.0
    assert (frame_detector.transform(odd).argmax(axis=1) == 3).all()


def test_set_output_names_the_columns(make_detector: Make, rows: Rows) -> None:
    table = make_detector().fit(rows).set_output(transform="pandas").transform(rows)
    assert isinstance(table, pd.DataFrame) and list(table.columns) == [f"residual_x{i}" for i in range(4)]


def test_missing_values_raise_the_score_where_they_are_rare(make_detector: Make, rows: Rows) -> None:
    never = make_detector().fit(rows)
    gaps = rows.copy()
    gaps[:, 1] = np.nan
    assert np.median(never.anomaly_score(gaps)) > np.quantile(never.anomaly_score(rows), 0.95)
    often = rows.copy()
    often[::2, 1] = np.nan
    model = make_detector().fit(often)
    assert np.median(model.anomaly_score(gaps)) < np.quantile(model.anomaly_score(often), 0.95)


def test_all_spellings_of_missing_are_alike(frame_detector: PTAD, frame: pd.DataFrame) -> None:
    table = frame.head(3).copy()
    table["colour"] = pd.Series([None, np.nan, pd.NA], dtype=object)
    table[["a", "b", "c"]] = table.loc[0, ["a", "b", "c"]].to_numpy(dtype=float)
    assert len(set(frame_detector.anomaly_score(table))) == 1
