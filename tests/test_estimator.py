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

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "best"}, "The 'preset' parameter of PTAD must be a str among"),
        ({"false_alarm_rate": 1.5}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"false_alarm_rate": 0}, "The 'false_alarm_rate' parameter of PTAD must be"),
        ({"context": "row"}, "The 'context' parameter of PTAD must be a str among"),
        ({"config": 3}, "The 'config' parameter of PTAD must be"),
        ({"verbose": -1}, "The 'verbose' parameter of PTAD must be"),
        ({"random_state": "x"}, "The 'random_state' parameter of PTAD must be"),
        (
            {"config": {"n_basis_vectors": 0}},
            "The 'n_basis_vectors' parameter of PTAD must be an int in the range [1, inf). Got 0 instead.",
        ),
        ({"config": {"n_basis": 1}}, "Got 'n_basis' instead; known fields:"),
    ],
    ids=str,
)
def test_parameters_are_judged_in_fit(rows: Rows, parameters: dict[str, Any], message: str) -> None:
    model = PTAD(**parameters)  # stored untouched
    assert all(model.get_params()[name] is value for name, value in parameters.items())
    with pytest.raises(ValueError) as caught:
        model.fit(rows)
    assert message in str(caught.value)


def test_a_device_that_is_not_there(rows: Rows) -> None:
    with pytest.raises(SettingError, match="The 'device' parameter of PTAD names 'abacus'"):
        PTAD(device="abacus").fit(rows)


def test_a_whole_config_can_be_given(tiny: dict[str, Any], rows: Rows, detector: PTAD) -> None:
    config = make_config("default", tiny)
    model = PTAD("paper", config=config, verbose=0).fit(rows)
    assert isinstance(model.config_, Config) and model.config_ is config
    assert np.array_equal(model.anomaly_score(rows), detector.anomaly_score(rows))


def test_what_a_fit_leaves(detector: PTAD, frame_detector: PTAD) -> None:
    assert detector.n_features_in_ == 4 and not hasattr(detector, "feature_names_in_")
    assert list(frame_detector.feature_names_in_) == ["a", "b", "colour", "c"]
    assert detector.false_alarm_rate_ == 0.01 and np.isfinite(detector.offset_)
    assert detector.config_.embedding_dim == 4 and detector.schema_.n_encoded == 4


@pytest.mark.parametrize(
    "method",
    [
        "anomaly_score",
        "score_samples",
        "decision_function",
        "predict",
        "p_value",
        "score_parts",
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
    with pytest.raises(ValueError, match="0 sample"):
        detector.predict(rows[:0])
    with pytest.raises(SettingError, match=r"'auto' or a number between 0 and 1\. Got 'low'"):
        detector.set_false_alarm_rate("low")
    with pytest.raises(DataError, match="Duplicate column names: 'a'"):
        PTAD().fit(pd.DataFrame(rows, columns=["a", "b", "a", "c"]))
    with pytest.raises(DataError, match="infinity"):
        detector.predict(np.where(rows > 2, np.inf, rows))


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


def test_an_unseen_category_is_strange_and_no_crash(frame_detector: PTAD, frame: pd.DataFrame) -> None:
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
    model = make_detector(n_steps=100).fit(rows[:, :1])
    assert model.anomaly_score([[30.0]])[0] > np.median(model.anomaly_score(rows[:, :1]))


def test_a_refused_rate_leaves_no_half_fitted_detector(make_detector: Make, rows: Rows) -> None:
    model = make_detector(parameters={"false_alarm_rate": 0.0001})
    with pytest.raises(SettingError):
        model.fit(rows)
    with pytest.raises(NotFittedError):
        model.anomaly_score(rows)


def test_blocks_of_a_large_array_leave_no_trace(
    detector: PTAD, rows: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = detector.anomaly_score(rows)
    monkeypatch.setattr("ptad.estimator.BLOCK_ROWS", 7)
    assert np.array_equal(detector.anomaly_score(rows), whole)
