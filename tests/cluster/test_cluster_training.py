"""Training on two nodes: the workers agree, learn as one does, and go on after a kill."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.metrics import roc_auc_score

from ptad import PTAD
from ptad.engines.learning import fit_table
from ptad.engines.ray.training import cluster_learner
from ptad.tables import write_table
from ptad.training import Checkpoint, data_parallel

pytestmark = pytest.mark.filterwarnings("ignore")


class Threads:
    """Workers of a group as threads of this process."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier, self.given = size, threading.Barrier(size), {}

    def member(self, rank: int) -> Any:
        outer = self

        class Member:
            size = outer.size

            def __init__(self) -> None:
                self.rank = rank

            def average(self, tensors: Any) -> None:
                outer.given[rank] = [t.clone() for t in tensors]
                outer.barrier.wait()
                means = [
                    torch.stack(same).mean(0) for same in zip(*(outer.given[i] for i in range(outer.size)), strict=True)
                ]
                outer.barrier.wait()
                for tensor, mean in zip(tensors, means, strict=True):
                    tensor.copy_(mean)

        return Member()


def table(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 3] = x[:, 0] + 0.1 * x[:, 1]
    return x


def test_workers_agree_in_every_parameter_and_resume(
    tiny: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(200, 0)

    def fit(checkpoint: Path | None = None) -> list[PTAD]:
        group = Threads(2)
        fitted = [PTAD(config=tiny, verbose=0, device="cpu") for _ in range(2)]

        def work(rank: int) -> None:
            try:
                with data_parallel(group.member(rank)):
                    fitted[rank].fit(rows, checkpoint=checkpoint)
            except (KeyboardInterrupt, threading.BrokenBarrierError):
                group.barrier.abort()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return fitted

    first, second = fit()
    alone = PTAD(config=tiny, verbose=0, device="cpu").fit(rows)
    states = [model.scorer_.network.state_dict() for model in (first, second, alone)]
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
    assert any(not torch.equal(tensor, states[2][name]) for name, tensor in states[0].items())
    assert torch.equal(first.scorer_.reference_rows, second.scorer_.reference_rows)
    assert np.array_equal(first.calibration_.scores, second.calibration_.scores)  # type: ignore[union-attr]
    assert first.history_ != second.history_  # each looked at rows of its own

    plain, saved = Checkpoint.save, []

    def dying(self: Checkpoint, *state: Any) -> None:
        plain(self, *state)
        saved.append(state[1]["step"])
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", dying)
    assert not hasattr(fit(tmp_path)[0], "scorer_") and saved == [5, 10]
    resumed = fit(tmp_path)
    assert saved[2] == 15
    for model in resumed:
        for name, tensor in model.scorer_.network.state_dict().items():
            assert torch.equal(tensor, states[0][name]), name


@pytest.mark.slow
def test_two_workers_learn_as_one_does(cluster: Any, tmp_path: Path, tiny: dict[str, Any]) -> None:
    names = list("abcd")
    rows = pa.table(dict(zip(names, table(600, 0).T, strict=True)))
    write_table(rows, tmp_path / "t.parquet")
    parameters = {"config": {**tiny, "n_steps": 100}, "device": "cpu", "verbose": 0}
    learn = cluster_learner(tmp_path / "m", workers=2)
    summary = fit_table(tmp_path / "t.parquet", tmp_path / "m", parameters, learn=learn)
    assert summary["rows_learned"] == summary["calibration_rows"] == 600
    assert {p.name for p in tmp_path.iterdir()} == {"t.parquet", "m"}
    model = PTAD.load(tmp_path / "m", device="cpu")
    new = table(300, 1)
    odd = new.copy()
    odd[:, 3] = new[::-1, 3]
    both = pa.table(dict(zip(names, np.concatenate([new, odd]).T, strict=True)))
    labels = np.repeat([0, 1], 300)
    alone = PTAD(**parameters).fit(rows)
    expected = roc_auc_score(labels, alone.anomaly_score(both))
    assert expected > 0.8 and abs(roc_auc_score(labels, model.anomaly_score(both)) - expected) < 0.03
