"""A first look at ptad on a table that comes with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer

from ptad.engines.evaluation import Evaluation, judge
from ptad.engines.local import decision_of
from ptad.engines.strangest import explained_rows
from ptad.estimator import PTAD


@dataclass(frozen=True)
class Demo:
    """What the demonstration found.

    Attributes
    ----------
    trained_rows, n_columns : int
        What the model learned from.
    evaluation : Evaluation
        On the rows that it did not learn from.
    strangest : list of dict
        Its strangest new rows, as in :func:`ptad.engines.strangest.strangest_rows`, each with its true ``label``.
    """

    trained_rows: int
    n_columns: int
    evaluation: Evaluation
    strangest: list[dict[str, Any]]


def run_demo(*, seed: int = 0, verbose: int = 1, top: int = 5, columns: int = 3, **parameters: Any) -> Demo:
    """Learn from half of the benign rows of the breast cancer table; judge the other half and the malignant rows."""
    data = load_breast_cancer()
    table = pa.table(dict(zip(map(str, data.feature_names), data.data.T, strict=True)))
    malignant = np.asarray(data.target) == 0  # in this table 1 is benign
    benign_rows = np.random.default_rng(seed).permutation(np.flatnonzero(~malignant))
    train = np.sort(benign_rows[: len(benign_rows) // 2])
    new = np.setdiff1d(np.arange(len(malignant)), train)
    model = PTAD(random_state=seed, verbose=verbose, **parameters).fit(table.take(train))

    new_rows = table.take(new)
    scores = model.anomaly_score(new_rows)
    threshold, promised = decision_of(model)
    evaluation = judge(scores, malignant[new], threshold, promised)
    order = np.argsort(-scores, kind="stable")[:top]
    strangest = explained_rows(model, new_rows.take(order), new[order].tolist(), columns)
    for entry in strangest:
        entry["label"] = str(data.target_names[data.target[entry["row"]]])
    return Demo(len(train), len(model.schema_.names), evaluation, strangest)
