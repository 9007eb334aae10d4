"""Training on two nodes: the workers learn as one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from ptad import PTAD
from ptad.jobs.fit import fit_table
from ptad.jobs.ray.training import cluster_fit
from ptad.tables import write_table

pytestmark = pytest.mark.filterwarnings("ignore")


def table(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 3] = x[:, 0] + 0.1 * x[:, 1]
    return x


@pytest.mark.slow
def test_two_workers_learn_as_one_does(cluster: Any, tmp_path: Path, tiny: dict[str, Any]) -> None:
    names = list("abcd")
    rows = pa.table(dict(zip(names, table(600, 0).T, strict=True)))
    write_table(rows, tmp_path / "t.parquet")
    parameters = {"preset": "paper", "config": {**tiny, "network.n_steps": 100}, "device": "cpu", "verbose": 0}
    fit_function = cluster_fit(tmp_path / "m", workers=2)
    summary = fit_table(tmp_path / "t.parquet", tmp_path / "m", parameters, fit_function=fit_function)
    assert summary["training_rows"] == summary["calibration_rows"] == 600
    assert {p.name for p in tmp_path.iterdir()} == {"t.parquet", "m"}
    model = PTAD.load(tmp_path / "m", device="cpu")
    new = table(300, 1)
    odd = new.copy()
    odd[:, 3] = new[::-1, 3]
    both = pa.table(dict(zip(names, np.concatenate([new, odd]).T, strict=True)))
    labels = np.repeat([0, 1], 300)
    alone = PTAD(**parameters).fit(rows)
    expected = roc_auc_score(labels, alone.anomaly_score(both))
    assert expected > 0.55 and abs(roc_auc_score(labels, model.anomaly_score(both)) - expected) < 0.05
