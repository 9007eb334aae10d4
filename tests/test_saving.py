"""Saving over a model: killed at any step, met by readers, or at the same time as others, a whole model is there."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptad.folders
from ptad import PTAD, BundleError
from ptad.folders import staging_folders
from ptad.model import Model
from stopping import exit_code, in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

Rows = NDArray[np.float64]
Save = Callable[[], None]


@pytest.fixture(scope="module")
def models(make_detector: Callable[..., PTAD], rows: Rows) -> tuple[PTAD, PTAD]:
    """Two models that score differently."""
    few = {"calibration.folds": 2, "calibration.most_folds": 2}
    return make_detector(config=few).fit(rows), make_detector(config=few).fit(2.0 * rows)


@pytest.fixture(params=["exchange", "two renames"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where models are saved, on a system that lets two folders change places and on one that does not."""
    if request.param == "two renames":
        monkeypatch.setattr(ptad.folders, "exchange", lambda *_: False)
    return tmp_path / "home" / "model"


def kill_at(step: int, folder: Path) -> None:
    """Have this process killed just before its n-th step among files in that folder."""
    seen = [0]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
            return
        # a removal names a file by its open folder: every removal counts
        if event in ("os.remove", "os.rmdir") or any(str(folder) in str(a) for a in arguments[:2]):
            seen[0] += 1
            if seen[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def killed_savers(new: PTAD, target: Path) -> Iterator[int]:
    """Kill a saver before its first step, another one before its second, ..., until one has come to the end."""
    for step in range(1, 1000):

        def save(step: int = step) -> None:
            kill_at(step, target.parent)
            new.save(target)

        code = exit_code(in_child(save))
        assert code in (0, -signal.SIGKILL)
        yield step
        if code == 0:
            return


def test_killed_at_any_step_the_old_or_the_new_model_is_there(
    models: tuple[PTAD, PTAD], rows: Rows, target: Path
) -> None:
    old, new = models
    known = [model.anomaly_score(rows) for model in models]
    found = []
    old.save(target)
    for _ in killed_savers(new, target):
        scores = Model.load(target).anomaly_score(rows)
        found.append([np.array_equal(scores, k) for k in known].index(True))
        assert [p.name for p in target.parent.iterdir()] == ["model"]  # opening has cleared up
        shutil.rmtree(target)
        old.save(target)
    assert len(found) > 10 and found == sorted(found) and found[0] == 0 and found[-1] == 1


def test_a_first_save_that_is_killed_leaves_nothing_that_looks_like_a_model(
    models: tuple[PTAD, PTAD], target: Path
) -> None:
    target.parent.mkdir()
    for _ in killed_savers(models[1], target):
        if target.exists():
            Model.load(target)
            shutil.rmtree(target)
        else:
            with pytest.raises(BundleError, match="There is no model folder"):
                Model.load(target)
        assert not staging_folders(target)


def test_the_next_save_cleans_up(models: tuple[PTAD, PTAD], target: Path) -> None:
    models[0].save(target)
    left = [target.with_name(f".model.{i:016x}.saving") for i in range(3)]
    for folder in left:
        folder.mkdir()
        (folder / "manifest.json").write_text("{")
    other = target.with_name(".model.notes.saving")  # not one of ours
    other.mkdir()
    models[1].save(target)
    assert sorted(p.name for p in target.parent.iterdir()) == [".model.notes.saving", "model"]


@pytest.mark.parametrize("n", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_a_reader_finds_a_whole_model_while_another_process_saves(
    models: tuple[PTAD, PTAD], rows: Rows, target: Path, n: int
) -> None:
    known = [model.anomaly_score(rows) for model in models]
    models[0].save(target)

    def save() -> None:
        for i in range(n):
            models[(i + 1) % 2].save(target)

    child = in_child(save)
    reads = 0
    try:
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            scores = Model.load(target).anomaly_score(rows)
            assert any(np.array_equal(scores, k) for k in known)
            reads += 1
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    assert reads > 0
    assert np.array_equal(Model.load(target).anomaly_score(rows), known[n % 2])
    assert [p.name for p in target.parent.iterdir()] == ["model"]


def test_several_save_at_the_same_time(models: tuple[PTAD, PTAD], rows: Rows, target: Path) -> None:
    def save() -> None:
        for i in range(8):
            models[i % 2].save(target)

    assert [exit_code(child) for child in [in_child(save) for _ in range(3)]] == [0, 0, 0]
    scores = Model.load(target).anomaly_score(rows)
    assert any(np.array_equal(scores, model.anomaly_score(rows)) for model in models)
    assert [p.name for p in target.parent.iterdir()] == ["model"]


def test_a_link_to_a_model_stays_a_link(models: tuple[PTAD, PTAD], rows: Rows, target: Path) -> None:
    models[0].save(target)
    link = target.with_name("current")
    link.symlink_to("model")
    models[1].save(link)
    assert link.is_symlink()
    assert np.array_equal(Model.load(target).anomaly_score(rows), models[1].anomaly_score(rows))
