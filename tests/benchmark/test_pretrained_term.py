"""The script that trains the pretrained term: what was stopped goes on, and weights say what they were trained on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_scripts import load_script
from safetensors import safe_open
from safetensors.numpy import load_file

from ptad.terms import pretrained

SHIPPED = Path(pretrained.__file__).with_name("pretrained.safetensors")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with three tiny tables in two folds, two copies and three steps."""
    module = load_script("pretrained_term")
    for name, value in {"N_COPIES": 2, "N_FOLDS": 2, "STEPS": 3, "FOLDS": tmp_path / "folds.csv"}.items():
        monkeypatch.setattr(module, name, value)
    module.FOLDS.write_text("table,fold\na,0\nb,1\nc,0\n", encoding="utf-8")
    (tmp_path / "tables").mkdir()
    for i, name in enumerate("abc"):
        write_table(tmp_path / "tables" / f"{name}.npz", seed=i)
    return module


def write_table(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    test = np.concatenate([rng.normal(size=(30, 3)), 3.0 + rng.normal(size=(10, 3))])
    np.savez(path, train=rng.normal(size=(130, 3)), test=test, y=np.arange(40) >= 30)


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def arrays_of(out: Path) -> dict[str, np.ndarray]:
    found = {}
    for path in out.glob("*.npz"):
        with np.load(path) as held:
            found |= {f"{path.name} {name}": held[name] for name in held}
    for path in out.glob("*.safetensors"):
        found |= {f"{path.name} {name}": value for name, value in load_file(path).items()}
    return found


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, "np") as held:
        return dict(held.metadata())


def files_of(out: Path) -> dict[str, tuple[int, int]]:
    """The files, and what changes when one is written anew."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.iterdir()}


def stop_at_call(number: int, function: Any) -> Any:
    """Return the function, whose call of that number is the moment of an interruption."""
    calls = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        found = function(*args, **kwargs)
        if len(calls) == number:
            raise KeyboardInterrupt
        return found

    return counted


def test_a_stopped_run_goes_on_and_ends_as_if_it_had_not_been(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    tables, whole, out = tmp_path / "tables", new_folder(tmp_path / "whole"), new_folder(tmp_path / "out")
    script.describe(tables, whole)
    script.train(whole)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(np, "savez", stop_at_call(2, np.savez))  # the second table is on the disk, but has no name yet
        script.describe(tables, out)
    first = files_of(out)
    assert first.keys() == {"a.npz"}
    with pytest.raises(FileNotFoundError):  # no training on a part of the tables
        script.train(out)
    script.describe(tables, out)
    assert files_of(out)["a.npz"] == first["a.npz"]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        clip = torch.nn.utils.clip_grad_norm_
        patch.setattr(
            torch.nn.utils, "clip_grad_norm_", stop_at_call(script.STEPS + 2, clip)
        )  # amid the second network
        script.train(out)
    first = files_of(out)
    assert {name for name in first if name.endswith("safetensors")} == {"pretrained.safetensors"}
    script.train(out)
    assert files_of(out)["pretrained.safetensors"] == first["pretrained.safetensors"]

    found, expected = arrays_of(out), arrays_of(whole)
    assert found.keys() == expected.keys() and len(list(out.glob("*.safetensors"))) == 3
    for name, value in expected.items():
        assert np.array_equal(found[name], value), name
    for path in whole.glob("*.safetensors"):
        assert metadata(out / path.name) == metadata(path)


def test_a_changed_table_is_described_anew_and_what_saw_it_is_trained_anew(script: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    tables, out = tmp_path / "tables", new_folder(tmp_path / "out")
    script.describe(tables, out)
    script.train(out)
    assert metadata(out / "weights0.safetensors").items() >= {"seed": "1", "tables": "1"}.items()
    assert metadata(out / "pretrained.safetensors").items() >= {"seed": "0", "tables": "3"}.items()
    first = files_of(out)
    write_table(tables / "b.npz", seed=7)
    script.describe(tables, out)
    script.train(out)
    changed = {name for name, written in files_of(out).items() if written != first[name]}
    assert changed == {"b.npz", "tables.json", "pretrained.safetensors", "weights0.safetensors"}  # fold 1 is b itself
    assert json.loads((out / "tables.json").read_text())["folds"] == {"a": 0, "b": 1, "c": 0}


@pytest.mark.data
def test_the_weights_that_ship_name_their_seed_and_their_tables() -> None:
    module = load_script("pretrained_term")
    folds = module.read_folds()
    paths = [Path(os.environ["PTAD_DATA"], "macro", f"{name}.npz") for name in sorted(folds)]
    about = {"seed": "0", "tables": str(len(folds)), "tables_sha256": module.digests(paths, folds)[-1]}
    assert metadata(SHIPPED) == about
