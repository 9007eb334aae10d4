"""scikit-learn's own checks, and its tools around the detector."""

from __future__ import annotations

from collections.abc import Callable
from unittest import SkipTest

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_outlier_detector
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ptad import PTAD

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]


@pytest.mark.filterwarnings("default")  # the checks provoke warnings on purpose
@pytest.mark.parametrize(
    "config", [{"calibration.folds": 4, "calibration.most_folds": 4}, pytest.param(None, marks=pytest.mark.slow)]
)
def test_check_estimator(config: dict[str, int] | None) -> None:
    """All of scikit-learn's checks, no failure expected; with fewer folds first, which is quicker.

    Some checks want a few training rows flagged. A model keeps its training rows, and a row that equals one of them is
    near by design: at a rate of 0.01 none is flagged, at 0.1 some are.
    """
    failures, n_checks = [], 0
    for model, check in estimator_checks_generator(PTAD(config=config, false_alarm_rate=0.1, verbose=0)):
        n_checks += 1
        try:
            check(model)
        except SkipTest:  # it asks for something that is not installed
            n_checks -= 1
        except Exception as error:  # collected, so that one run tells all
            failures.append(f"{getattr(check, 'func', check).__name__}: {error!r}")
    assert not failures, "\n".join(failures)
    assert n_checks > 40


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_check_estimator_of_the_paper_preset(make_detector: Make) -> None:
    """Invariance and input with a tiny network."""
    wanted = {
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit2d_1sample",
        "check_n_features_in",
        "check_dict_unchanged",
        "check_outliers_fit_predict",
        "check_parameters_default_constructible",
    }
    seen = set()
    for model, check in estimator_checks_generator(make_detector("paper")):
        name = getattr(check, "func", check).__name__
        if name in wanted:
            check(model)
            seen.add(name)
    assert seen == wanted


def test_is_an_outlier_detector() -> None:
    assert is_outlier_detector(PTAD())


def test_clone_keeps_every_parameter(make_detector: Make, rows: Rows) -> None:
    model = make_detector(false_alarm_rate=0.05, random_state=3).fit(rows)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "detector_")
    assert np.array_equal(copy.fit(rows).anomaly_score(rows), model.anomaly_score(rows))


def test_set_params(make_detector: Make, rows: Rows) -> None:
    model = make_detector().set_params(false_alarm_rate=0.1, random_state=5)
    assert model.fit(rows).false_alarm_rate_ == 0.1


def test_fit_predict(make_detector: Make, rows: Rows) -> None:
    labels = make_detector(false_alarm_rate=0.3).fit_predict(rows)
    assert set(labels) == {-1, 1} and (labels == 1).mean() > 0.7


def test_pipeline(make_detector: Make, rows: Rows) -> None:
    pipeline = make_pipeline(StandardScaler(), make_detector()).fit(rows)
    assert set(pipeline.predict(rows)) <= {-1, 1}
    assert pipeline.decision_function(rows + 30.0).max() < 0
    assert pipeline.score_samples(rows).shape == (100,)


def test_residuals_as_a_step_of_a_pipeline(make_detector: Make, rows: Rows) -> None:
    from sklearn.neighbors import LocalOutlierFactor

    pipeline = make_pipeline(make_detector(), LocalOutlierFactor(novelty=True)).fit(rows)
    assert pipeline.predict(rows).shape == (100,)


def test_grid_search_over_settings() -> None:
    data = load_breast_cancer()
    benign, malignant = data.data[data.target == 1], data.data[data.target == 0]
    # y only reaches the scorer: the detector ignores it
    x, y = np.concatenate([benign[:120], malignant[:40]]), np.repeat([1, -1], [120, 40])

    def auc(model: PTAD, x: Rows, y: NDArray[np.int64]) -> float:
        return float(roc_auc_score(y, model.score_samples(x)))

    quick = {"calibration.method": "none"}
    grid = {"config": [{**quick, "local_reconstruction.ridge": r} for r in np.array([0.01, 1.0])], "random_state": [0]}
    search = GridSearchCV(PTAD(verbose=0), grid, scoring=auc, cv=KFold(2, shuffle=True, random_state=0))
    search.fit(x, y)
    assert search.best_params_["config"]["local_reconstruction.ridge"] in (0.01, 1.0)
    assert search.best_score_ > 0.6 and np.isfinite(search.cv_results_["mean_test_score"]).all()
