"""A fit that is interrupted at any moment and started again ends in the same model."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad import PTAD
from ptad.training import Trainer
from stopping import HANG, Stops

Make = Callable[..., PTAD]
Same = Callable[[PTAD, PTAD], bool]
Rows = NDArray[np.float64]


class Interrupted(Exception):
    """Stands for a lost process."""


def interrupted_fit(model: PTAD, rows: Rows, folder: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit, but stop before the ``at``-th look at the loss."""
    original, looks = Trainer._look, [0]

    def look(self: Trainer, *arguments: Any) -> None:
        looks[0] += 1
        if looks[0] == at:
            raise Interrupted
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_look", look)
        with pytest.raises(Interrupted):
            model.fit(rows, checkpoint=folder)


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_resumed_equals_undisturbed(
    make_detector: Make,
    same_parameters: Same,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
    at: int,
) -> None:
    fields = {"members": "folds"}  # two networks: one after the other by LAMB, together by AdamW
    interrupted_fit(make_detector(preset, **fields), rows, tmp_path, at, monkeypatch)
    resumed = make_detector(preset, **fields).fit(rows, checkpoint=tmp_path)
    undisturbed = make_detector(preset, **fields).fit(rows)
    assert same_parameters(resumed, undisturbed)
    assert np.array_equal(resumed.anomaly_score(rows), undisturbed.anomaly_score(rows))
    assert resumed.offset_ == undisturbed.offset_


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_resumed_equals_undisturbed_with_early_stopping(
    make_detector: Make,
    same_parameters: Same,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
) -> None:
    fields = {"patience": 1, "n_steps": 40, "batch_size": 32, "members": "folds"}
    interrupted_fit(make_detector(preset, **fields), rows, tmp_path, 3, monkeypatch)
    resumed = make_detector(preset, **fields).fit(rows, checkpoint=tmp_path)
    assert same_parameters(resumed, make_detector(preset, **fields).fit(rows))


FIT = """
import sys
import numpy as np, torch
torch.set_num_threads(1)
from ptad import PTAD
rng = np.random.default_rng(0)
rows = rng.normal(size=(80, 4))
config = dict(embedding_dim=4, n_heads=1, abd_width=8, n_steps=120, interval=2, batch_size=32, n_folds=2,
              n_reference=32)
model = PTAD("paper", config=config, verbose=0).fit(rows, checkpoint=sys.argv[1])
model.save(sys.argv[2])
"""


@pytest.mark.slow
def test_killed_at_random_moments(same_parameters: Same, tmp_path: Path) -> None:
    stops = Stops(tmp_path / "stops")

    def fit(checkpoint: str, out: str) -> int:
        command = [sys.executable, "-c", FIT, str(tmp_path / checkpoint), str(tmp_path / out)]
        return subprocess.run(command, env={**os.environ, **stops.environment}, timeout=HANG, check=False).returncode

    assert fit("undisturbed-checkpoint", "undisturbed") == 0
    moments = random.Random(0)
    for _ in range(4):
        # three events per checkpoint, of which there are sixty: opened, renamed, and a look for what is left over
        count = moments.randint(2, 36)
        stop = stops.add("*/checkpoint/*", count, events=("open", "os.rename", "os.remove"))
        assert fit("checkpoint", "resumed") == -signal.SIGKILL and stop.pid is not None
        assert not (tmp_path / "resumed").exists()
    assert fit("checkpoint", "resumed") == 0
    resumed, undisturbed = PTAD.load(tmp_path / "resumed"), PTAD.load(tmp_path / "undisturbed")
    assert same_parameters(resumed, undisturbed) and resumed.offset_ == undisturbed.offset_
