"""A first look at ptad on a table that comes with scikit-learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ptad.estimator import PTAD
from ptad.jobs.batches import operating_point
from ptad.jobs.evaluate import Evaluation, compare
from ptad.jobs.explain import explained_rows


class Demo(NamedTuple):
    """The result of the demonstration; ``top_rows`` are those of :func:`explained_rows`, with their true ``label``."""

    training_rows: int
    n_columns: int
    evaluation: Evaluation
    top_rows: list[dict[str, Any]]


def run_demo(*, seed: int = 0, verbose: int = 1, top: int = 5, columns: int = 3, **parameters: Any) -> Demo:
    """Fit on half of the benign rows of the breast cancer table; score the other half and the malignant rows."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    table = pa.table(dict(zip(map(str, data.feature_names), data.data.T, strict=True)))
    malignant = np.asarray(data.target) == 0  # in this table 1 is benign
    benign_rows = np.random.default_rng(seed).permutation(np.flatnonzero(~malignant))
    train = np.sort(benign_rows[: len(benign_rows) // 2])
    new = np.setdiff1d(np.arange(len(malignant)), train)
    model = PTAD(random_state=seed, verbose=verbose, **parameters).fit(table.take(train))

    new_rows = table.take(new)
    scores = model.anomaly_score(new_rows)
    evaluation = compare(scores, malignant[new], *operating_point(model))
    order = np.argsort(-scores, kind="stable")[:top]
    top_rows = explained_rows(model, new_rows.take(order), new[order].tolist(), columns)
    for entry in top_rows:
        entry["label"] = str(data.target_names[data.target[entry["row"]]])
    return Demo(len(train), len(model.schema_.names), evaluation, top_rows)
