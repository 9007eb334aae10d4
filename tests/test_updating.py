"""Warm continuation: a model follows new normal rows, keeps the old ones, and promises the rate for the new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ptad import PTAD, DataError, SettingError

Array = NDArray[np.float32]
MIXING = np.random.default_rng(5).normal(size=(2, 6))


def draw(n: int, seed: int, shift: float = 0.0) -> Array:
    """Rows of two hidden factors; a shift moves half of the columns."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ MIXING + 0.1 * rng.normal(size=(n, 6))
    rows[:, :3] += shift
    return rows.astype(np.float32)


@pytest.fixture(scope="module", params=["default", "paper"])
def fitted(request: pytest.FixtureRequest, tiny: dict[str, Any]) -> PTAD:
    return PTAD(request.param, config=tiny, false_alarm_rate=0.05, random_state=0, verbose=0).fit(draw(300, 0))


@pytest.fixture
def model(fitted: PTAD, tmp_path_factory: pytest.TempPathFactory) -> PTAD:
    """A copy that a test may change."""
    folder = tmp_path_factory.mktemp("model") / "m"
    fitted.save(folder)
    return PTAD.load(folder, device="cpu").set_params(verbose=0)


def test_false_alarms_return_to_the_promise_after_a_shift(model: PTAD) -> None:
    test = draw(1000, 2, shift=3.0)
    before = np.mean(model.predict(test) == -1)
    model.update(draw(400, 1, shift=3.0))
    after = np.mean(model.predict(test) == -1)
    assert before > 0.3
    assert after < 0.05 + 4 * np.sqrt(0.05 * 0.95 * (1 / 200 + 1 / 1000))
    assert model.calibration_ is not None and len(model.calibration_.scores) == 200


def test_old_rows_are_not_forgotten(model: PTAD) -> None:
    """Rows of the fit stay less strange than rows that were never seen."""
    model.update(draw(200, 1, shift=3.0))
    old, never = model.anomaly_score(draw(300, 4)), model.anomaly_score(draw(300, 4, shift=-3.0))
    assert np.median(old) < np.median(never)


def test_a_loaded_model_updates_to_the_same_scores(fitted: PTAD, tmp_path: Any, tiny: dict[str, Any]) -> None:
    new, test = draw(100, 1), draw(20, 2)
    scores = []
    for name in ("a", "b"):
        fitted.save(tmp_path / name)
        scores.append(PTAD.load(tmp_path / name, device="cpu").set_params(verbose=0).update(new).anomaly_score(test))
    np.testing.assert_array_equal(*scores)
    assert not np.array_equal(scores[0], fitted.anomaly_score(test))


def test_updated_scores_survive_storage_and_do_not_depend_on_the_batch(model: PTAD, tmp_path: Any) -> None:
    model.update(draw(100, 1))
    test = draw(20, 2)
    model.save(tmp_path / "m")
    scores = model.anomaly_score(test)
    np.testing.assert_array_equal(PTAD.load(tmp_path / "m", device="cpu").anomaly_score(test), scores)
    np.testing.assert_array_equal(np.concatenate([model.anomaly_score(test[i : i + 1]) for i in range(20)]), scores)


def test_history_goes_on(model: PTAD) -> None:
    before = list(model.history_)
    model.update(draw(100, 1), n_steps=7)
    assert model.history_[: len(before)] == before
    assert model.history_[-1]["step"] == before[-1]["step"] + 7


def test_what_cannot_be_updated_is_said_and_leaves_the_model_alone(model: PTAD) -> None:
    test = draw(5, 2)
    scores = model.anomaly_score(test)
    with pytest.raises(DataError, match="at least 4 new normal rows, got 3"):
        model.update(draw(3, 1))
    with pytest.raises(SettingError, match=r"0\.05"):
        model.update(draw(20, 1))  # ten calibration rows cannot promise 5 %
    with pytest.raises(SettingError, match="'n_steps' parameter of update must be at least 1"):
        model.update(draw(100, 1), n_steps=0)
    with pytest.raises(ValueError, match="features"):
        model.update(draw(100, 1)[:, :4])
    np.testing.assert_array_equal(model.anomaly_score(test), scores)


def test_an_unfitted_model_cannot_be_updated() -> None:
    with pytest.raises(NotFittedError):
        PTAD().update(draw(10, 0))
