"""Update and recalibrate: a model follows new normal rows, keeps the rate, and refuses what would loosen it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from hidden_factors import draw
from ptad import PTAD, DataError

Array = NDArray[np.float64]
Make = Callable[..., PTAD]


@pytest.fixture(scope="module", params=["default", "paper"])
def fitted(request: pytest.FixtureRequest, make_detector: Make) -> PTAD:
    return make_detector(request.param, false_alarm_rate=0.05).fit(draw(200, 0))


@pytest.fixture
def model(fitted: PTAD, tmp_path_factory: pytest.TempPathFactory) -> PTAD:
    """A copy that a test may change."""
    folder = tmp_path_factory.mktemp("model") / "m"
    fitted.save(folder)
    return PTAD.load(folder, device="cpu").set_params(verbose=0)


def state(model: PTAD) -> dict[str, Any]:
    """Everything that an update could change."""
    calibration = model.detector_.calibration
    return {
        "scores": model.anomaly_score(draw(20, 9)).tolist(),
        "reference": model.detector_.reference.tobytes(),
        "calibration": None if calibration is None else calibration.scores.tolist(),
        "rate": (model.false_alarm_rate_, model.false_alarm_rate, model.offset_),
        "history": list(model.history_),
    }


def test_false_alarms_return_to_the_target_after_a_shift(model: PTAD) -> None:
    new = draw(1000, 2, shift=3.0)
    before = np.mean(model.predict(new) == -1)
    model.update(draw(400, 1, shift=3.0))
    after = np.mean(model.predict(new) == -1)
    assert before > 0.3
    assert after < 0.05 + 4 * np.sqrt(0.05 * 0.95 * (1 / 200 + 1 / 1000))
    assert len(model.detector_.calibration.scores) == 200


def test_old_rows_are_not_forgotten(model: PTAD) -> None:
    """Rows of the fit stay less anomalous than rows that were never seen."""
    model.update(draw(200, 1, shift=3.0))
    old, never = model.anomaly_score(draw(300, 4)), model.anomaly_score(draw(300, 4, shift=-3.0))
    assert np.median(old) < np.median(never)


def test_the_same_update_gives_the_same_model(fitted: PTAD, tmp_path: Path) -> None:
    new, test = draw(100, 1), draw(20, 2)
    scores = []
    for name in ("a", "b"):
        fitted.save(tmp_path / name)
        scores.append(PTAD.load(tmp_path / name, device="cpu").set_params(verbose=0).update(new).anomaly_score(test))
    np.testing.assert_array_equal(*scores)
    assert not np.array_equal(scores[0], fitted.anomaly_score(test))


def test_updated_scores_survive_storage_and_do_not_depend_on_the_batch(model: PTAD, tmp_path: Path) -> None:
    model.update(draw(100, 1))
    test = draw(20, 2)
    model.save(tmp_path / "m")
    scores = model.anomaly_score(test)
    np.testing.assert_array_equal(PTAD.load(tmp_path / "m", device="cpu").anomaly_score(test), scores)
    np.testing.assert_array_equal(np.concatenate([model.anomaly_score(test[i : i + 1]) for i in range(20)]), scores)


def test_half_of_the_new_rows_join_the_reference_rows_up_to_their_number(make_detector: Make) -> None:
    model = make_detector(config={"reference.rows": 150}).fit(draw(120, 0))
    old, new = {row.tobytes() for row in draw(120, 0)}, {row.tobytes() for row in draw(200, 1)}
    model.update(draw(200, 1))
    now = [row.tobytes() for row in model.detector_.reference]
    assert len(now) == 150 and set(now) <= old | new and set(now) & old and set(now) & new
    assert len(model.detector_.calibration.scores) == 100


def test_calibration_rows_are_not_among_the_reference_rows(make_detector: Make) -> None:
    new = draw(200, 1)
    model = make_detector().fit(draw(120, 0)).update(new)
    kept = {row.tobytes() for row in model.detector_.reference}
    held = np.isfinite(model.held_out_scores_)
    assert held.sum() == 100 and len(model.held_out_scores_) == 200
    assert not any(row.tobytes() in kept for row in new[held])
    assert all(row.tobytes() in kept for row in new[~held])


@pytest.mark.parametrize(("rate", "needed"), [(0.05, 38), (0.01, 198), (0.1, 18)])
def test_an_update_with_too_few_rows_is_refused_and_changes_nothing(model: PTAD, rate: float, needed: int) -> None:
    model.set_false_alarm_rate(rate)
    before = state(model)
    with pytest.raises(DataError, match=rf"false-alarm rate of {rate:g} needs {needed} rows.*The model is unchanged"):
        model.update(draw(needed - 1, 1))
    assert state(model) == before
    model.update(draw(needed, 1))
    assert model.false_alarm_rate_ == rate


def test_a_recalibration_with_too_few_rows_is_refused_and_changes_nothing(model: PTAD) -> None:
    before = state(model)
    with pytest.raises(DataError, match=r"false-alarm rate of 0\.05 needs 19 rows.*The model is unchanged"):
        model.recalibrate(draw(18, 1))
    assert state(model) == before
    model.recalibrate(draw(19, 1))
    assert len(model.detector_.calibration.scores) == 19 and model.false_alarm_rate_ == 0.05


def test_an_automatic_rate_is_not_loosened_by_an_update(make_detector: Make) -> None:
    """With 200 rows "auto" is 0.01; 20 new rows support 0.0909 only, which nobody asked for."""
    model = make_detector().fit(draw(200, 0))
    assert model.false_alarm_rate_ == 0.01 and model.get_params()["false_alarm_rate"] == "auto"
    for refused in (model.update, model.recalibrate):
        with pytest.raises(DataError, match=r"rate of 0\.01 needs"):
            refused(draw(20, 1))
    model.set_false_alarm_rate(0.1).update(draw(20, 1))
    assert model.false_alarm_rate_ == 0.1


def test_a_recalibration_keeps_the_scores_and_takes_the_threshold_from_the_rows_given(model: PTAD) -> None:
    test, rows = draw(30, 2), draw(99, 3, shift=1.0)
    scores = model.anomaly_score(test)
    model.recalibrate(rows)
    assert np.array_equal(model.anomaly_score(test), scores)
    assert np.array_equal(model.detector_.calibration.scores, np.sort(model.anomaly_score(rows)))


def test_a_model_without_calibration_can_be_given_one(make_detector: Make, tmp_path: Path) -> None:
    model = make_detector(config={"calibration.method": "none"}).fit(draw(100, 0))
    model.recalibrate(draw(99, 1))
    assert model.false_alarm_rate_ == 0.01 and set(model.predict(draw(50, 2))) <= {-1, 1}
    model.save(tmp_path / "m")
    assert PTAD.load(tmp_path / "m").offset_ == model.offset_


def test_rows_of_other_columns_are_refused_and_change_nothing(model: PTAD) -> None:
    before = state(model)
    with pytest.raises(ValueError, match="features"):
        model.update(draw(100, 1)[:, :4])
    assert state(model) == before


@pytest.mark.parametrize("method", ["update", "recalibrate"])
def test_an_unfitted_model_cannot_be_updated(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(PTAD(), method)(draw(10, 0))


def test_a_category_that_an_update_brings_is_no_longer_unseen(make_detector: Make) -> None:
    """All categories beyond those of the fit share one code: once such rows are normal, they are known."""
    import pandas as pd

    rng = np.random.default_rng(0)

    def table(n: int, colours: list[str]) -> Any:
        return pd.DataFrame({"x": rng.normal(size=n), "colour": rng.choice(colours, size=n)})

    model = make_detector().fit(table(300, ["red", "green"]))
    violet = table(50, ["violet"])
    assert np.mean(model.predict(violet) == -1) > 0.8
    model.update(table(400, ["red", "violet"]))
    assert np.mean(model.predict(violet) == -1) < 0.1
