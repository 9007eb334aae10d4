"""The adapter for PyOD, held against what PyOD's own detectors do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

pytest.importorskip("pyod")
from pyod.models.base import BaseDetector
from pyod.models.knn import KNN

from ptad import PTAD, MissingExtraError
from ptad.pyod import PTADDetector

Rows = NDArray[np.float64]


@pytest.fixture(scope="module")
def fitted(rows: Rows) -> PTADDetector:
    return PTADDetector().fit(rows)


@pytest.fixture(scope="module")
def native(rows: Rows) -> BaseDetector:
    """A detector of PyOD itself, as the measure of behaviour."""
    return KNN().fit(rows)


def test_is_a_detector_of_pyod(fitted: PTADDetector) -> None:
    assert isinstance(fitted, BaseDetector)


def test_scores_are_those_of_ptad(fitted: PTADDetector, rows: Rows) -> None:
    plain = PTAD(verbose=0).fit(rows)
    assert np.array_equal(fitted.decision_function(rows), plain.anomaly_score(rows))
    assert np.array_equal(fitted.decision_scores_, plain.held_out_scores_)


@pytest.mark.parametrize("method", ["folds", "split"])
def test_new_normal_rows_are_labelled_as_often_as_training_rows(method: str) -> None:
    rng = np.random.default_rng(3)
    model = PTADDetector(config={"calibration.method": method}).fit(rng.normal(size=(500, 10)))
    assert 0.04 < model.predict(rng.normal(size=(1000, 10))).mean() < 0.18  # 0.1, less and more by chance
    assert model.decision_scores_.shape == model.labels_.shape == (500,)
    assert np.array_equal(model.labels_, model.decision_scores_ > model.threshold_)


def test_without_calibration_the_scores_are_those_of_the_model(rows: Rows) -> None:
    model = PTADDetector(config={"calibration.method": "none"}).fit(rows)
    assert np.array_equal(model.decision_scores_, model.decision_function(rows)) and model.labels_.sum() == 10


def test_higher_is_more_anomalous(fitted: PTADDetector, rows: Rows) -> None:
    assert fitted.decision_function(rows[:1] + 40.0)[0] > fitted.decision_scores_.max()


def test_training_labels_follow_the_contamination(fitted: PTADDetector, native: BaseDetector) -> None:
    assert set(np.unique(fitted.labels_)) == {0, 1} and fitted.labels_.sum() == 10
    assert fitted.threshold_ == pytest.approx(np.percentile(fitted.decision_scores_, 90))
    assert np.array_equal(fitted.labels_, fitted.decision_scores_ > fitted.threshold_)
    assert fitted.labels_.shape == native.labels_.shape and fitted.labels_.dtype == native.labels_.dtype


def test_predict(fitted: PTADDetector, native: BaseDetector, rows: Rows) -> None:
    assert np.array_equal(fitted.predict(rows), fitted.decision_function(rows) > fitted.threshold_)
    assert fitted.predict(rows[:3] + 40.0).tolist() == [1, 1, 1] == native.predict(rows[:3] + 40.0).tolist()
    labels, confidence = fitted.predict(rows, return_confidence=True)
    assert np.array_equal(labels, fitted.predict(rows)) and ((confidence >= 0) & (confidence <= 1)).all()


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_predict_proba(fitted: PTADDetector, native: BaseDetector, rows: Rows, method: str) -> None:
    found = fitted.predict_proba(rows, method=method)
    assert found.shape == native.predict_proba(rows, method=method).shape == (100, 2)
    assert np.allclose(found.sum(axis=1), 1.0) and ((found >= 0) & (found <= 1)).all()
    order = np.argsort(fitted.decision_function(rows))
    assert (np.diff(found[order, 1]) >= 0).all()
    assert fitted.predict_proba(rows[:1] + 40.0, method=method)[0, 1] > 0.99


@pytest.mark.parametrize("contamination", [0.05, 0.3])
def test_contamination_places_the_threshold_only(fitted: PTADDetector, rows: Rows, contamination: float) -> None:
    other = PTADDetector(contamination=contamination).fit(rows)
    assert np.array_equal(other.decision_scores_, fitted.decision_scores_)
    assert other.labels_.sum() == round(100 * contamination)


@pytest.mark.parametrize("contamination", [0.0, 0.6, -1.0])
def test_contamination_outside_its_range(contamination: float) -> None:
    with pytest.raises(ValueError, match="contamination must be in"):
        PTADDetector(contamination=contamination)


def test_clone_and_parameters(fitted: PTADDetector, rows: Rows) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "detector_")
    assert set(copy.get_params()) == {
        "contamination",
        "preset",
        "config",
        "device",
        "random_state",
        "verbose",
    }
    copy.set_params(contamination=0.2, random_state=4)
    assert copy.fit(rows).labels_.sum() == 20
    assert "PTADDetector(" in repr(copy)


def test_not_fitted(rows: Rows) -> None:
    for method in ("decision_function", "predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(PTADDetector(), method)(rows)


def test_labels_given_to_fit_are_ignored_with_pyods_warning(fitted: PTADDetector, rows: Rows) -> None:
    with pytest.warns(UserWarning, match="y should not be presented"):
        model = PTADDetector().fit(rows, np.arange(100) % 2)
    assert np.array_equal(model.decision_scores_, fitted.decision_scores_)


def test_wrong_settings_reach_the_user(rows: Rows) -> None:
    with pytest.raises(ValueError, match="There is no preset 'best'"):
        PTADDetector(preset="best").fit(rows)


def test_the_inner_detector_offers_the_rest(fitted: PTADDetector, rows: Rows) -> None:
    assert fitted.detector_.p_value(rows).shape == (100,)
    assert fitted.detector_.explain(rows[:2]).contribution_values.shape == (2, 4)


def test_ptad_does_not_import_pyod() -> None:
    code = "import sys, ptad; sys.exit('pyod' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pyod_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "pyod.models.base", None)
    monkeypatch.delitem(sys.modules, "ptad.pyod")
    with pytest.raises(MissingExtraError, match=r"pip install 'ptad\[pyod\]'"):
        importlib.import_module("ptad.pyod")
