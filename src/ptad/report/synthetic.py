"""A health check without labels: can the detector tell held-out normal rows from anomalies made on purpose?

Four kinds, after the usual taxonomy, made in the encoded space from training rows kept in the model:

- local: a row pushed away from the centre of its own group of rows, so that the group's spread grows five-fold;
- global: every column anywhere within 1.1 times its range, categories at random;
- dependency: columns shuffled against each other: every value is plausible, their combination is not;
- clustered: a tight group of rows, three standard deviations away in every numeric column, with the same categories.

The normal side are the scores of the calibration rows, which the network that judged them never saw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from ptad.estimator import PTAD
from ptad.fitting import make_retrieval
from ptad.scoring import Scorer
from ptad.tables import Schema

Rows = NDArray[np.float64]

KINDS = ("local", "global", "dependency", "clustered")
N_ROWS = 500
N_GROUPS = 3
VARIANCE_FACTOR, RANGE_FACTOR, CLUSTER_SHIFT, CLUSTER_SPREAD = 5.0, 1.1, 3.0, 0.3


def synthetic_check(model: PTAD, *, seed: int = 0) -> dict[str, float | None]:
    """Return the area under the ROC curve per kind; None where the table has no columns to make that kind from."""
    schema = model.schema_
    calibration = model.calibration_
    if calibration is None:
        return dict.fromkeys(KINDS)
    rng = np.random.default_rng(seed)
    scorer, base = _without_twins(model.scorer_, rng)
    makers = {"local": _local, "global": _global, "dependency": _dependency, "clustered": _clustered}
    found: dict[str, float | None] = {}
    for kind, make in makers.items():
        anomalies = make(base, schema, rng)
        if anomalies is None:
            found[kind] = None
            continue
        scores = scorer.parts(_clipped(anomalies, schema)).score
        truth = np.repeat([0, 1], [len(calibration.scores), len(scores)])
        found[kind] = float(roc_auc_score(truth, np.concatenate([calibration.scores, scores])))
    return found


def _without_twins(scorer: Scorer, rng: np.random.Generator) -> tuple[Scorer, Rows]:
    """Return rows to make anomalies from, and a scorer that does not retrieve these very rows.

    An anomaly that is half a training row would find that row as its neighbour, which no real anomaly does.
    """
    if scorer.retrieval is None:
        rows = scorer.reference_rows[0]
        return scorer, rows[torch.from_numpy(rng.permutation(len(rows))[:N_ROWS])].cpu().numpy()
    bank = scorer.retrieval.rows
    order = torch.from_numpy(rng.permutation(len(bank))).to(bank.device)
    n_taken = max(1, min(N_ROWS, len(bank) // 4))
    others = make_retrieval(bank[order[n_taken:]], scorer.network.config, scorer.retrieval.units)
    return replace(scorer, retrieval=others), bank[order[:n_taken]].double().cpu().numpy()


def _numeric(schema: Schema) -> NDArray[np.int64]:
    """Encoded columns whose value may be any number."""
    kinds = np.array(list(schema.kinds.values()))[schema.groups]
    return np.flatnonzero((kinds == "number") | (kinds == "duration"))


def _groups(schema: Schema) -> list[NDArray[np.int64]]:
    """Encoded columns of every column that is not numeric: they only make sense together."""
    numeric = set(_numeric(schema).tolist())
    spans = [np.flatnonzero(schema.groups == j) for j in range(len(schema.names))]
    return [span for span in spans if span[0] not in numeric]


def _local(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    numeric = _numeric(schema)
    if not len(numeric):
        return None
    values = rows[:, numeric]
    filled = np.where(np.isnan(values), _means(values), values)
    n_groups = min(N_GROUPS, len(np.unique(filled, axis=0)))
    groups = KMeans(n_groups, n_init=1, random_state=int(rng.integers(2**31))).fit(filled)
    made = rows.copy()
    centre = groups.cluster_centers_[groups.labels_]
    made[:, numeric] = centre + np.sqrt(VARIANCE_FACTOR) * (values - centre)
    return made


def _global(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    made = rows.copy()
    numeric = _numeric(schema)
    low, high = _ends(rows[:, numeric])
    middle, half = (low + high) / 2, RANGE_FACTOR * (high - low) / 2
    made[:, numeric] = rng.uniform(middle - half, middle + half, size=(len(rows), len(numeric)))
    for span in _groups(schema):
        # any value that occurs, each as likely as the others
        seen = np.unique(rows[:, span], axis=0)
        made[:, span] = seen[rng.integers(len(seen), size=len(rows))]
    return made


def _dependency(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    if len(schema.names) < 2:
        return None
    made = rows.copy()
    for j in range(len(schema.names)):
        span = np.flatnonzero(schema.groups == j)
        made[:, span] = rows[rng.permutation(len(rows))][:, span]
    return made


def _clustered(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows | None:
    numeric = _numeric(schema)
    if not len(numeric):
        return None
    made = rows.copy()
    values = rows[:, numeric]
    mean, spread = _means(values), np.sqrt(_means((values - _means(values)) ** 2))
    centre = mean + CLUSTER_SHIFT * spread * rng.choice([-1.0, 1.0], size=len(numeric))
    made[:, numeric] = centre + CLUSTER_SPREAD * (values - mean)
    for span in _groups(schema):
        made[:, span] = rows[rng.integers(len(rows)), span]
    return made


def _means(values: Rows) -> Rows:
    present = ~np.isnan(values)
    return np.asarray(np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _ends(values: Rows) -> tuple[Rows, Rows]:
    gone = np.isnan(values)
    low = np.where(gone, np.inf, values).min(axis=0, initial=np.inf)
    high = np.where(gone, -np.inf, values).max(axis=0, initial=-np.inf)
    return np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)


def _clipped(rows: Rows, schema: Schema) -> NDArray[Any]:
    """End encoded values where the schema would."""
    if schema.clip is None:
        return rows.astype(np.float32)
    top = schema.clip + (1.0 if schema.scaling == "minmax" else 0.0)
    return np.clip(rows, -schema.clip, top).astype(np.float32)
