"""A health check without labels: can the detector tell normal rows from synthetic anomalies?

Some of the reference rows are set apart, and the terms are fitted again without them: these rows are the normal side,
and the anomalies are made from them. So neither side finds itself among the rows that it is compared with. Terms that
were trained are too costly to fit again and do not look for neighbours: they stay as they are, and the normal side are
the calibration rows. Four types, after the usual taxonomy, in the units of the table:

- local: a row pushed away from the centre of its own group of rows, so that the group's spread grows five-fold;
- global: every column anywhere within 1.1 times its range, categories at random;
- dependency: columns shuffled against each other: every value is plausible, their combination is not;
- clustered: a tight group of rows, three standard deviations away in every numeric column, with the same categories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from ptad.detector import Detector
from ptad.devices import resolve_device
from ptad.estimator import PTAD
from ptad.tables import Schema

Rows = NDArray[np.float64]
Score = Callable[[Rows], Rows]

KINDS = ("local", "global", "dependency", "clustered")
N_ROWS = 500
FEWEST_ROWS = 5  # set apart; from fewer, an area under a curve says nothing
N_GROUPS = 3
VARIANCE_FACTOR, RANGE_FACTOR, CLUSTER_SHIFT, CLUSTER_SPREAD = 5.0, 1.1, 3.0, 0.3


def synthetic_check(model: PTAD, *, seed: int = 0) -> dict[str, float | None]:
    """Return the area under the ROC curve per type; None where rows or columns do not allow that type."""
    rng = np.random.default_rng(seed)
    sides = _sides(model, rng)
    if sides is None:
        return dict.fromkeys(KINDS)
    base, normal, score = sides
    makers = {"local": _local, "global": _global, "dependency": _dependency, "clustered": _clustered}
    found: dict[str, float | None] = {}
    for kind, make in makers.items():
        anomalies = make(base, model.schema_, rng)
        if anomalies is None:
            found[kind] = None
            continue
        scores = score(_whole(anomalies, model.schema_))
        truth = np.repeat([0, 1], [len(normal), len(scores)])
        found[kind] = float(roc_auc_score(truth, np.concatenate([normal, scores])))
    return found


def _sides(model: PTAD, rng: np.random.Generator) -> tuple[Rows, Rows, Score] | None:
    """Return rows to make anomalies from, scores of normal rows, and what scores the anomalies."""
    detector = model.detector_
    reference = detector.reference
    order = rng.permutation(len(reference))
    if model.history_:  # trained
        calibration = detector.calibration
        return None if calibration is None else (reference[order[:N_ROWS]], calibration.scores, detector.scores)
    n_taken = min(N_ROWS, len(reference) // 4)
    if n_taken < FEWEST_ROWS:
        return None
    base, rest = reference[np.sort(order[:n_taken])], reference[np.sort(order[n_taken:])]
    config = detector.config.replace({"calibration.method": "none"})
    seed = int(rng.integers(2**31))
    others = Detector.fit(rest, detector.features, config, seed=seed, device=resolve_device(model.device))
    # without calibration the units would come from rows that were fitted on, where terms look too good
    others = replace(others, units=detector.units)
    return base, others.scores(base), others.scores


def _numeric(schema: Schema) -> NDArray[np.int64]:
    """Features whose value may be any number."""
    types = np.array([column.type for column in schema.columns])[schema.features.column]
    return np.flatnonzero((types == "numeric") | (types == "duration"))


def _spans(schema: Schema) -> list[NDArray[np.int64]]:
    """The features of every column: those of a date or a text only make sense together."""
    return [np.flatnonzero(schema.features.column == j) for j in range(len(schema.names))]


def _local(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    numeric = _numeric(schema)
    if not len(numeric):
        return None
    values = rows[:, numeric]
    mean, spread = _means(values), _spreads(values)
    filled = (np.where(np.isnan(values), mean, values) - mean) / spread
    n_groups = min(N_GROUPS, len(np.unique(filled, axis=0)))
    groups = KMeans(n_groups, n_init=1, random_state=int(rng.integers(2**31))).fit(filled)
    made = rows.copy()
    centre = mean + spread * groups.cluster_centers_[groups.labels_]
    made[:, numeric] = centre + np.sqrt(VARIANCE_FACTOR) * (values - centre)
    return made


def _global(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    made = rows.copy()
    numeric = _numeric(schema)
    low, high = _ends(rows[:, numeric])
    middle, half = (low + high) / 2, RANGE_FACTOR * (high - low) / 2
    made[:, numeric] = rng.uniform(middle - half, middle + half, size=(len(rows), len(numeric)))
    for span in _spans(schema):
        if span[0] not in numeric:
            # any value that occurs, each as likely as the others
            seen = np.unique(rows[:, span], axis=0)
            made[:, span] = seen[rng.integers(len(seen), size=len(rows))]
    return made


def _dependency(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    if len(schema.names) < 2:
        return None
    made = rows.copy()
    for span in _spans(schema):
        made[:, span] = rows[rng.permutation(len(rows))][:, span]
    return made


def _clustered(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    numeric = _numeric(schema)
    if not len(numeric):
        return None
    made = rows.copy()
    values = rows[:, numeric]
    mean = _means(values)
    centre = mean + CLUSTER_SHIFT * _spreads(values) * rng.choice([-1.0, 1.0], size=len(numeric))
    made[:, numeric] = centre + CLUSTER_SPREAD * (values - mean)
    for span in _spans(schema):
        if span[0] not in numeric:
            made[:, span] = rows[rng.integers(len(rows)), span]
    return made


def _means(values: Rows) -> Rows:
    present = ~np.isnan(values)
    return np.asarray(np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _spreads(values: Rows) -> Rows:
    """Standard deviations, 1 where nothing varies."""
    found = np.sqrt(_means((values - _means(values)) ** 2))
    return np.where(found > 0, found, 1.0)


def _ends(values: Rows) -> tuple[Rows, Rows]:
    gone = np.isnan(values)
    low = np.where(gone, np.inf, values).min(axis=0, initial=np.inf)
    high = np.where(gone, -np.inf, values).max(axis=0, initial=-np.inf)
    return np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)


def _whole(rows: Rows, schema: Schema) -> Rows:
    """Round numbers of columns of whole numbers: a fraction there would give a synthetic anomaly away."""
    made = rows.copy()
    for column, span in zip(schema.columns, _spans(schema), strict=True):
        if getattr(column, "integer", False):
            made[:, span] = np.rint(made[:, span])
    return made
