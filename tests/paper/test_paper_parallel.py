"""Data parallel training: the workers agree in every parameter, and resume together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from batches import batch
from numpy.typing import NDArray

from ptad.paper.checkpoint import Checkpoint
from ptad.paper.parallel import data_parallel, share_of_batch
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Same = Callable[[NetworkTerm, NetworkTerm], bool]
Rows = NDArray[np.float64]


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


def fit_together(fit: Callable[[], NetworkTerm]) -> dict[int, NetworkTerm]:
    """Fit with two workers; a worker that is lost takes the other one along."""
    group, fitted = Threads(2), {}

    def work(rank: int) -> None:
        try:
            with data_parallel(group.member(rank)):
                fitted[rank] = fit()
        except (KeyboardInterrupt, threading.BrokenBarrierError):
            group.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return fitted


def test_workers_agree_in_every_parameter_and_resume(
    fit_term: Fit, same_state: Same, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = fit_together(lambda: fit_term(rows))
    assert same_state(together[0], together[1])
    assert not same_state(together[0], fit_term(rows))
    assert np.array_equal(together[0].value(batch(rows)), together[1].value(batch(rows)))
    assert together[0].history != together[1].history  # each looked at rows of its own

    plain, saved = Checkpoint.save, []

    def dying(self: Checkpoint, *state: Any) -> None:
        plain(self, *state)
        saved.append(state[1]["step"])
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", dying)
    assert not fit_together(lambda: fit_term(rows, checkpoint=tmp_path)) and saved == [5, 10]
    resumed = fit_together(lambda: fit_term(rows, checkpoint=tmp_path))
    assert saved[2] == 15
    assert all(same_state(term, together[0]) for term in resumed.values()) and len(resumed) == 2


def test_shares_of_a_batch() -> None:
    group = Threads(3).member(0)
    assert share_of_batch(512, None) == 512
    assert share_of_batch(512, group) == 171
    assert share_of_batch(30, group) == 16  # attention between rows needs some
    assert share_of_batch(8, group) == 8
