"""Synthetic anomalies of four types, after the usual taxonomy (Steinbuss and Boehm 2021; Han et al. 2022, ADBench).

There are two ways to make them, for two questions. :func:`disturbed_rows` changes rows of a table of any column types,
for the check without labels of the report:

- local: a row pushed away from the centre of its own group of rows, so that the group's spread grows five-fold;
- global: every column anywhere within 1.1 times its range, categories at random;
- dependency: columns shuffled against each other: every value is plausible, their combination is not;
- clustered: a tight group of rows, three standard deviations away in every numeric column, with the same categories.

:func:`drawn_table` draws normal rows from a model of real ones and anomalies from a disturbed model, as the paper and
ADBench do, which needs numbers alone:

- local: a Gaussian mixture; anomalies from the same mixture with covariances times 5;
- global: anomalies uniform between 1.1 times the smallest and the largest value of each column;
- dependency: normal rows from a vine copula with kernel margins; anomalies from the same margins, independently;
- clustered: anomalies from the mixture with its means times 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Indices, Matrix
from ptad.errors import SettingError, needs_extra
from ptad.tables import Schema

ANOMALY_TYPES = ("local", "global", "dependency", "clustered")
VARIANCE_FACTOR, RANGE_FACTOR = 5.0, 1.1
N_GROUPS, CLUSTER_SHIFT, CLUSTER_SPREAD = 3, 3.0, 0.3
MODEL_SHIFT, MAX_COMPONENTS = 5.0, 5
LARGE = 1e100  # of a number: its square is still far from the largest one


def disturbed_rows(anomaly_type: str, rows: Matrix, schema: Schema, rng: np.random.Generator) -> Matrix | None:
    """Return encoded rows of a table, each made an anomaly of a type; None where the columns do not allow that type."""
    columns = _columns(schema)
    types = np.array([column.type for column in schema.columns])[schema.features.column]
    numeric = np.flatnonzero((types == "numeric") | (types == "duration"))  # the features whose value may be any number
    if anomaly_type == "dependency" and len(columns) < 2:
        return None
    if anomaly_type in ("local", "clustered") and not len(numeric):
        return None
    disturb = {"local": _local, "global": _global, "dependency": _dependency, "clustered": _clustered}[anomaly_type]
    largest = np.fmax.reduce(np.abs(rows), initial=0.0)
    scale = np.where(largest > LARGE, largest, 1.0)  # so that no square and no sum becomes infinite
    limit = np.finfo(np.float64).max / scale
    return _round_whole_numbers(np.clip(disturb(rows / scale, numeric, columns, rng), -limit, limit) * scale, schema)


def drawn_table(anomaly_type: str, real: Matrix, n_anomalies: int, seed: int) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return rows drawn from a model of real normal rows, as many as there are of those, anomalies, and the labels.

    Columns are standardised first, so that the factors mean the same for every column; constant ones are excluded.
    """
    if anomaly_type not in ANOMALY_TYPES:
        raise SettingError(f"There is no anomaly type {anomaly_type!r}. Choose from: {', '.join(ANOMALY_TYPES)}.")
    rng = np.random.default_rng([seed, ANOMALY_TYPES.index(anomaly_type)])
    real = real[:, real.std(axis=0) > 0]
    real = (real - real.mean(axis=0)) / real.std(axis=0)
    if anomaly_type == "dependency":
        normal, anomalies = _with_and_without_dependence(real, n_anomalies, rng)
    else:
        weights, means, covariances = _mixture(real, rng)
        normal = _draw(weights, means, covariances, len(real), rng)
        if anomaly_type == "local":
            anomalies = _draw(weights, means, VARIANCE_FACTOR * covariances, n_anomalies, rng)
        elif anomaly_type == "clustered":
            anomalies = _draw(weights, MODEL_SHIFT * means, covariances, n_anomalies, rng)
        else:
            low, high = RANGE_FACTOR * normal.min(axis=0), RANGE_FACTOR * normal.max(axis=0)
            anomalies = rng.uniform(low, high, size=(n_anomalies, normal.shape[1]))
    rows = np.concatenate([normal, anomalies])
    order = rng.permutation(len(rows))
    return rows[order], (np.arange(len(rows)) >= len(normal))[order]


# rows that are changed ------------------------------------------------------------------------------------------------

Columns = list[Indices]  # the features of every column: those of a date or a text only make sense together


def _columns(schema: Schema) -> Columns:
    return [np.flatnonzero(schema.features.column == j) for j in range(len(schema.names))]


def _local(rows: Matrix, numeric: Indices, columns: Columns, rng: np.random.Generator) -> Matrix:
    from sklearn.cluster import KMeans

    values = rows[:, numeric]
    mean, spread = _means(values), _spreads(values)
    filled = (np.where(np.isnan(values), mean, values) - mean) / spread
    n_groups = min(N_GROUPS, len(np.unique(filled, axis=0)))
    groups = KMeans(n_groups, n_init=1, random_state=int(rng.integers(2**31))).fit(filled)
    centre = mean + spread * groups.cluster_centers_[groups.labels_]
    result = rows.copy()
    result[:, numeric] = centre + np.sqrt(VARIANCE_FACTOR) * (values - centre)
    return result


def _global(rows: Matrix, numeric: Indices, columns: Columns, rng: np.random.Generator) -> Matrix:
    result = rows.copy()
    # nan_to_num: an empty column becomes one of zeros
    low, high = np.nan_to_num(np.fmin.reduce(rows[:, numeric])), np.nan_to_num(np.fmax.reduce(rows[:, numeric]))
    middle, half = (low + high) / 2, RANGE_FACTOR * (high - low) / 2
    result[:, numeric] = rng.uniform(middle - half, middle + half, size=(len(rows), len(numeric)))
    for column in columns:
        if column[0] not in numeric:
            # any value that occurs, each with the same probability
            distinct = np.unique(rows[:, column], axis=0)
            result[:, column] = distinct[rng.integers(len(distinct), size=len(rows))]
    return result


def _dependency(rows: Matrix, numeric: Indices, columns: Columns, rng: np.random.Generator) -> Matrix:
    result = rows.copy()
    for column in columns:
        result[:, column] = rows[rng.permutation(len(rows))][:, column]
    return result


def _clustered(rows: Matrix, numeric: Indices, columns: Columns, rng: np.random.Generator) -> Matrix:
    result, values = rows.copy(), rows[:, numeric]
    mean = _means(values)
    centre = mean + CLUSTER_SHIFT * _spreads(values) * rng.choice([-1.0, 1.0], size=len(numeric))
    result[:, numeric] = centre + CLUSTER_SPREAD * (values - mean)
    for column in columns:
        if column[0] not in numeric:
            result[:, column] = rows[rng.integers(len(rows)), column]
    return result


def _means(values: Matrix) -> Matrix:
    """Return the mean of every column, 0 where all cells are missing."""
    present = ~np.isnan(values)
    return np.asarray(np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _spreads(values: Matrix) -> Matrix:
    """Return the standard deviation of every column, 1 where nothing varies."""
    spread = np.sqrt(_means((values - _means(values)) ** 2))
    return np.where(spread > 0, spread, 1.0)


def _round_whole_numbers(rows: Matrix, schema: Schema) -> Matrix:
    """Round columns of whole numbers: a fraction there would give a synthetic anomaly away."""
    result = rows.copy()
    for column, features in zip(schema.columns, _columns(schema), strict=True):
        if getattr(column, "integer", False):
            result[:, features] = np.rint(result[:, features])
    return result


# rows that are drawn --------------------------------------------------------------------------------------------------


def _mixture(rows: Matrix, rng: np.random.Generator) -> tuple[Matrix, Matrix, Matrix]:
    """Return a Gaussian mixture: weights, means, covariances. BIC chooses the number of components."""
    from sklearn.mixture import GaussianMixture

    seed = int(rng.integers(2**31))
    fits = [
        GaussianMixture(n, random_state=seed, reg_covar=1e-4).fit(rows)
        for n in range(1, min(MAX_COMPONENTS, len(rows) // 2) + 1)
    ]
    best = min(fits, key=lambda fit: float(fit.bic(rows)))
    return best.weights_, best.means_, best.covariances_


def _draw(weights: Matrix, means: Matrix, covariances: Matrix, n_rows: int, rng: np.random.Generator) -> Matrix:
    component = rng.choice(len(weights), n_rows, p=weights / weights.sum())
    factors = np.linalg.cholesky(covariances)
    noise = rng.normal(size=(n_rows, means.shape[1]))
    return np.asarray(means[component] + np.einsum("nij,nj->ni", factors[component], noise))


def _with_and_without_dependence(rows: Matrix, n_anomalies: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Normal rows with the columns' dependence, anomalies with the same margins and none."""
    with needs_extra("bench", "Dependency anomalies", "pyvinecopulib"):
        import pyvinecopulib
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
    dependent = np.asarray(draw(len(rows), seeds=seeds))
    independent = rng.uniform(size=(n_anomalies, rows.shape[1]))
    return _margins(rows, dependent, rng), _margins(rows, independent, rng)


def _margins(rows: Matrix, uniform: Matrix, rng: np.random.Generator) -> Matrix:
    """Quantiles of a Gaussian kernel density of each column: the empirical quantile plus kernel noise."""
    bandwidth = 1.06 * rows.std(axis=0) * len(rows) ** -0.2
    quantiles = np.stack([np.quantile(rows[:, j], uniform[:, j]) for j in range(rows.shape[1])], axis=1)
    # Silverman's width is meant for smooth columns; a tenth of it keeps the kernel from blurring the dependence.
    return np.asarray(quantiles + 0.1 * bandwidth * rng.normal(size=quantiles.shape))
