"""A fit that is interrupted at any moment and started again ends in the same term."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptad.errors import SettingError
from ptad.paper.checkpoint import Checkpoint
from ptad.paper.training import Trainer
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Same = Callable[[NetworkTerm, NetworkTerm], bool]
Rows = NDArray[np.float64]


class Interrupted(Exception):
    """Stands for a lost process."""


def interrupted_fit(fit: Callable[[], Any], at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit, but stop before the ``at``-th evaluation."""
    original, calls = Trainer._evaluate, [0]

    def counted(self: Trainer, *arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == at:
            raise Interrupted
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_evaluate", counted)
        with pytest.raises(Interrupted):
            fit()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"optimizer": "adamw", "weight_decay": 0.1},
        {"patience": 1, "n_steps": 40, "batch_size": 32},
        {"projection_mask": "none", "weight_decay": 0.1},  # its basis vectors have no gradient, hence no moments
        {"projection_mask": "random"},
        {"backbone": "mlp"},
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [1, 3])
def test_resumed_equals_undisturbed(
    fit_term: Fit,
    same_state: Same,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    at: int,
) -> None:
    interrupted_fit(lambda: fit_term(rows, checkpoint=tmp_path, **fields), at, monkeypatch)
    assert len(list(tmp_path.glob("*.safetensors"))) == (at > 1)
    resumed, undisturbed = fit_term(rows, checkpoint=tmp_path, **fields), fit_term(rows, **fields)
    assert same_state(resumed, undisturbed)
    assert np.array_equal(resumed.value(rows), undisturbed.value(rows))
    assert [e["total"] for e in resumed.history] == [e["total"] for e in undisturbed.history]


def test_a_checkpoint_changes_nothing(fit_term: Fit, same_state: Same, rows: Rows, tmp_path: Path) -> None:
    assert same_state(fit_term(rows), fit_term(rows, checkpoint=tmp_path))
    # and a finished one is taken as it is
    assert same_state(fit_term(rows), fit_term(rows, checkpoint=tmp_path))


def test_a_foreign_checkpoint_is_refused(fit_term: Fit, rows: Rows, tmp_path: Path) -> None:
    fit_term(rows, checkpoint=tmp_path)
    for table, fields in [(rows[::-1].copy(), {}), (rows, {"learning_rate": 0.001}), (rows, {"seed": 1})]:
        with pytest.raises(SettingError, match=r"belongs to another fit .*Delete it or name another path"):
            fit_term(table, checkpoint=tmp_path, **fields)


def test_a_full_disk_ends_a_fit_in_one_sentence_and_keeps_the_checkpoint(
    fit_term: Fit, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_term(rows, checkpoint=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    checkpoint = Checkpoint(next(iter(before)), "any")
    with pytest.raises(SettingError, match=r"network\.safetensors cannot be written: no space left on the device"):
        checkpoint.save({"x": torch.zeros(3)}, {})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_damaged_checkpoint_is_refused(fit_term: Fit, rows: Rows, tmp_path: Path) -> None:
    fit_term(rows, checkpoint=tmp_path)
    for file in tmp_path.glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(SettingError, match=r"cannot be read .*Delete it and fit again"):
        fit_term(rows, checkpoint=tmp_path)


FIT = """
import sys
from pathlib import Path
import numpy as np, torch
torch.set_num_threads(1)
from ptad.paper.settings import NetworkSettings
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import FitContext
from ptad.terms.network import NetworkTerm
rows = np.random.default_rng(0).normal(size=(80, 4))
settings = NetworkSettings(embedding_dim=4, n_heads=1, abd_width=8, n_steps=40, interval=2, batch_size=32,
                           n_reference=32)
tell = lambda step, n_steps, entry: print(step, flush=True)
context = FitContext(np.random.default_rng(0), 80, "cpu", tell, Path(sys.argv[1]))
reference = Reference(rows, Features.numeric(4), ReferenceSettings())
term = NetworkTerm.fit(rows, reference, settings, context)
np.savez(sys.argv[2], **term.state())
"""


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path) -> None:
    """Each process is killed as soon as it has told of a few checkpoints, be the machine slow or fast."""

    def start(checkpoint: str, out: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", FIT, str(tmp_path / checkpoint), str(tmp_path / out)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def steps_until(process: subprocess.Popen[str], n_lines: int | None) -> list[int]:
        """Return the steps told; kill the process after that many lines, or let it end."""
        assert process.stdout is not None
        told = []
        with process.stdout as stream:
            for line in stream:
                told.append(int(line))
                if len(told) == n_lines:
                    process.kill()
        process.wait()
        return told

    undisturbed = start("undisturbed-checkpoint", "undisturbed.npz")
    assert steps_until(undisturbed, None) == list(range(2, 41, 2)) and undisturbed.returncode == 0
    reached = 0
    for n_lines in (1, 3):
        killed = start("checkpoint", "resumed.npz")
        told = steps_until(killed, n_lines)
        assert killed.returncode != 0 and not (tmp_path / "resumed.npz").exists()
        assert told[0] > reached  # it went on from a checkpoint, not from the start
        reached = told[n_lines - 1]
    last = start("checkpoint", "resumed.npz")
    assert steps_until(last, None)[0] > reached and last.returncode == 0
    first, second = np.load(tmp_path / "undisturbed.npz"), np.load(tmp_path / "resumed.npz")
    assert sorted(first) == sorted(second)
    assert all(np.array_equal(first[name], second[name]) for name in first)
