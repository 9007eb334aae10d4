"""Four kinds of synthetic anomalies made from a real table: local, global, dependency, clustered.

Normal rows are drawn from a model of the real normal rows, anomalies from a disturbed model, as in ADBench (Han et al.
2022) and Steinbuss and Boehm (2021):

* local: a Gaussian mixture; anomalies from the same mixture with covariances times 5;
* global: anomalies uniform between 1.1 times the smallest and the largest value of each column;
* dependency: normal rows from a vine copula with kernel margins; anomalies from the same margins, independently;
* clustered: anomalies from the mixture with its means times 5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptad.benchmark.loading import Dataset
from ptad.errors import MissingExtraError, SettingError

FloatArray = npt.NDArray[np.float64]

KINDS = ("local", "global", "dependency", "clustered")
LOCAL_SCALE, GLOBAL_STRETCH, CLUSTER_SHIFT = 5.0, 1.1, 5.0
_MAX_COMPONENTS = 5


def synthesise(data: Dataset, kind: str, seed: int) -> Dataset:
    """A synthetic table with as many normal rows and anomalies as the real one.

    Parameters
    ----------
    data : Dataset
        The real table; only its normal rows are modelled. Columns are standardised first, so that the factors mean the
        same for every column.
    kind : {"local", "global", "dependency", "clustered"}
        What is wrong with the anomalies.
    seed : int
        Of the model and the draws.
    """
    if kind not in KINDS:
        raise SettingError(f"There is no anomaly type {kind!r}. Choose from: {', '.join(KINDS)}.")
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    real = data.X[~data.y].astype(np.float64)
    real = real[:, real.std(axis=0) > 0]
    real = (real - real.mean(axis=0)) / real.std(axis=0)
    n_normal, n_anomalies = len(real), int(data.y.sum())
    if kind == "dependency":
        normal, anomalies = _dependency(real, n_normal, n_anomalies, rng)
    else:
        weights, means, covariances = _mixture(real, rng)
        normal = _draw(weights, means, covariances, n_normal, rng)
        if kind == "local":
            anomalies = _draw(weights, means, LOCAL_SCALE * covariances, n_anomalies, rng)
        elif kind == "clustered":
            anomalies = _draw(weights, CLUSTER_SHIFT * means, covariances, n_anomalies, rng)
        else:
            low, high = GLOBAL_STRETCH * normal.min(axis=0), GLOBAL_STRETCH * normal.max(axis=0)
            anomalies = rng.uniform(low, high, size=(n_anomalies, normal.shape[1]))
    X = np.concatenate([normal, anomalies]).astype(np.float32)
    y = np.arange(len(X)) >= n_normal
    order = rng.permutation(len(X))
    return Dataset(f"{data.name}:{kind}", X[order], y[order])


def _mixture(rows: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A Gaussian mixture with the number of components that BIC picks."""
    from sklearn.mixture import GaussianMixture

    seed = int(rng.integers(2**31))
    fits = [
        GaussianMixture(n, random_state=seed, reg_covar=1e-4).fit(rows)
        for n in range(1, min(_MAX_COMPONENTS, len(rows) // 2) + 1)
    ]
    best = min(fits, key=lambda fit: float(fit.bic(rows)))
    return best.weights_, best.means_, best.covariances_


def _draw(
    weights: FloatArray, means: FloatArray, covariances: FloatArray, n_rows: int, rng: np.random.Generator
) -> FloatArray:
    component = rng.choice(len(weights), n_rows, p=weights / weights.sum())
    factors = np.linalg.cholesky(covariances)
    noise = rng.normal(size=(n_rows, means.shape[1]))
    return np.asarray(means[component] + np.einsum("nij,nj->ni", factors[component], noise))


def _dependency(
    rows: FloatArray, n_normal: int, n_anomalies: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Normal rows with the columns' dependence, anomalies with the same margins and none."""
    try:
        import pyvinecopulib
    except ImportError as error:
        raise MissingExtraError("pyvinecopulib", "bench", "Dependency anomalies") from error
    # Ties are broken at random: a vine on tied ranks finds dependence in the ties.
    jitter = rows + 1e-6 * rng.normal(size=rows.shape)
    uniform = (np.argsort(np.argsort(jitter, axis=0), axis=0) + 0.5) / len(rows)
    families = getattr(pyvinecopulib, "families", pyvinecopulib)  # at the top level in older releases
    # One-parameter families, fitted by inverting Kendall's tau: seconds for 21 columns instead of minutes.
    names = ("indep", "gaussian", "frank", "clayton", "gumbel", "joe")
    controls = pyvinecopulib.FitControlsVinecop(
        family_set=[getattr(families, name) for name in names], parametric_method="itau"
    )
    vine = pyvinecopulib.Vinecop.from_data(np.asfortranarray(uniform), controls=controls)
    seeds = [int(s) for s in rng.integers(2**31, size=5)]
    draw = getattr(vine, "sample", None) or vine.simulate  # renamed in 1.0
    dependent = np.asarray(draw(n_normal, seeds=seeds))
    independent = rng.uniform(size=(n_anomalies, rows.shape[1]))
    return _margins(rows, dependent, rng), _margins(rows, independent, rng)


def _margins(rows: FloatArray, uniform: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Quantiles of a Gaussian kernel density of each column: the empirical quantile plus kernel noise."""
    bandwidth = 1.06 * rows.std(axis=0) * len(rows) ** -0.2
    quantiles = np.stack([np.quantile(rows[:, j], uniform[:, j]) for j in range(rows.shape[1])], axis=1)
    # Silverman's width is meant for smooth columns; a tenth of it keeps the kernel from blurring the dependence.
    return np.asarray(quantiles + 0.1 * bandwidth * rng.normal(size=quantiles.shape))
