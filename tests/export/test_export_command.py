"""What the command refuses, and that it leaves nothing behind when it does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app
from ptad.export import parity, writing


@pytest.fixture
def model(mixed_model: PTAD, tmp_path: Path) -> Path:
    mixed_model.save(tmp_path / "model")
    return tmp_path / "model"


def run(model: Path, out: Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["export", str(model), "--out", str(out), "--json"])
    error = json.loads(done.stderr)["error"]
    return done.exit_code, error["type"], error["message"]


def test_a_path_that_cannot_be_written_is_told_at_once(model: Path, tmp_path: Path) -> None:
    code, _, message = run(model, tmp_path / "nowhere" / "model.onnx")
    assert code == 2 and "nowhere/model.onnx' cannot be written" in message
    code, _, message = run(model, tmp_path)
    assert code == 2 and "is a folder" in message


def test_context_batch_is_refused(mixed_model: PTAD, model: Path, tmp_path: Path) -> None:
    manifest_model = PTAD.load(model, device="cpu").set_params(context="batch")
    manifest_model.save(tmp_path / "batch")
    code, kind, message = run(tmp_path / "batch", tmp_path / "model.onnx")
    assert (code, kind) == (2, "SettingError") and "context='reference'" in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["batch", "model"]


def test_a_missing_package_names_the_extra(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, kind, message = run(model, tmp_path / "model.onnx")
    assert (code, kind) == (2, "MissingExtraError") and "pip install 'ptad[onnx]'" in message


def test_a_file_that_differs_is_removed_and_the_old_one_kept(
    exported: tuple[Path, object], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph of the model, held against scores that are 0.1 % off."""
    import onnx

    graph = onnx.load(exported[0])
    monkeypatch.setattr(writing, "make_graph", lambda scorer: graph)
    true_parts = type(PTAD.load(model, device="cpu").scorer_).parts

    def other_parts(self: object, x: np.ndarray, context: str = "reference") -> object:
        parts = true_parts(self, x, context)
        parts.score = parts.score * 1.001
        return parts

    out = tmp_path / "model.onnx"
    out.write_bytes(b"the old one")
    monkeypatch.setattr("ptad.scoring.scorer.Scorer.parts", other_parts)
    code, kind, message = run(model, out)
    assert (code, kind) == (1, parity.ParityError.__name__) and "1.0e-03" in message
    assert out.read_bytes() == b"the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "model.onnx"]
