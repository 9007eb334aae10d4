"""Anomalies of the four kinds, planted into scikit-learn's bundled tables, are found well above chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture

from ptad import PTAD

Rows = NDArray[np.float64]
QUICK = {"calibration.folds": 10, "calibration.most_folds": 10}


def breast_cancer() -> Rows:
    data = load_breast_cancer()
    return np.asarray(data.data[data.target == 1])[:, :10]


def wine() -> Rows:
    return np.asarray(load_wine().data)


def digits() -> Rows:
    data = load_digits()
    x = np.asarray(data.data[np.isin(data.target, [0, 6])])
    return x[:, x.std(axis=0) > 2.0][:, :24]


def plant_local(x: Rows, rng: np.random.Generator) -> Rows:
    """Draw from the normal clusters with their covariance blown up."""
    mixture = GaussianMixture(2, reg_covar=1e-3 * float(x.var()), random_state=0).fit(x)
    mixture.covariances_ = 5.0 * mixture.covariances_
    mixture.random_state = int(rng.integers(2**31))
    return np.asarray(mixture.sample(60)[0])


def plant_global(x: Rows, rng: np.random.Generator) -> Rows:
    """Draw each column uniformly from a little more than its range."""
    low, high = x.min(axis=0), x.max(axis=0)
    return rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), size=(60, x.shape[1]))


def plant_dependency(x: Rows, rng: np.random.Generator) -> Rows:
    """Keep every column's distribution, break what ties the columns together."""
    return np.stack([rng.choice(column, size=60) for column in x.T], axis=1)


def plant_clustered(x: Rows, rng: np.random.Generator) -> Rows:
    """Put a tight cluster beside the normal rows."""
    centre = x.mean(axis=0) + 3.0 * x.std(axis=0) * rng.choice([-1.0, 1.0], size=x.shape[1])
    return centre + 0.2 * x.std(axis=0) * rng.normal(size=(60, x.shape[1]))


KINDS: dict[str, Callable[[Rows, np.random.Generator], Rows]] = {
    "local": plant_local,
    "global": plant_global,
    "dependency": plant_dependency,
    "clustered": plant_clustered,
}
TABLES: dict[str, Callable[[], Rows]] = {"breast_cancer": breast_cancer, "wine": wine, "digits": digits}


@pytest.fixture(scope="module", params=sorted(TABLES))
def fitted(request: pytest.FixtureRequest) -> tuple[PTAD, Rows, Rows]:
    """Return a detector fitted on a random half, that half, and the other."""
    x = TABLES[request.param]()
    order = np.random.default_rng(0).permutation(len(x))
    train, test = x[order[: len(x) // 2]], x[order[len(x) // 2 :]]
    return PTAD(config=QUICK, verbose=0).fit(train), train, test


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_planted_anomalies_are_found(fitted: tuple[PTAD, Rows, Rows], kind: str) -> None:
    model, train, test = fitted
    anomalies = KINDS[kind](train, np.random.default_rng(1))
    scores = np.concatenate([model.anomaly_score(test), model.anomaly_score(anomalies)])
    auc = roc_auc_score(np.repeat([0, 1], [len(test), len(anomalies)]), scores)
    assert auc >= 0.75


def test_the_rate_is_kept_on_new_normal_rows(fitted: tuple[PTAD, Rows, Rows]) -> None:
    model, _, test = fitted
    model.set_false_alarm_rate(0.1)
    error = 3 * np.sqrt(0.1 * 0.9 * (1 / len(test) + 1 / len(model.detector_.calibration.scores)))
    assert (model.predict(test) == -1).mean() <= 0.1 + error


def test_malignant_rows_are_found() -> None:
    data = load_breast_cancer()
    benign, malignant = data.data[data.target == 1], data.data[data.target == 0]
    model = PTAD(config=QUICK, verbose=0).fit(benign[::2])
    scores = np.concatenate([model.anomaly_score(benign[1::2]), model.anomaly_score(malignant)])
    assert roc_auc_score(np.repeat([0, 1], [len(benign[1::2]), len(malignant)]), scores) > 0.93
