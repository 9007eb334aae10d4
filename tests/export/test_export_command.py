"""What the command refuses, and that it leaves nothing behind when it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app
from ptad.detector import Detector
from ptad.export import writing


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
    assert code == 2 and "nowhere/model.onnx cannot be written" in message
    code, _, message = run(model, tmp_path)
    assert code == 2 and "is a folder" in message


def test_models_that_score_batches_are_refused(
    rows: np.ndarray, make_detector: Callable[..., PTAD], tmp_path: Path
) -> None:
    pytest.importorskip("pytorch_optimizer")
    settings = {"network.context": "batch", "network.n_steps": 2, "calibration.method": "none"}
    make_detector("paper", settings).fit(rows).save(tmp_path / "batch")
    code, kind, message = run(tmp_path / "batch", tmp_path / "model.onnx")
    assert (code, kind) == (2, "SettingError") and "--set network.context=reference" in message
    assert [p.name for p in tmp_path.iterdir()] == ["batch"]


def test_models_beyond_the_format_are_refused(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptad.export.graph.MAX_BYTES", 1000)
    code, kind, message = run(model, tmp_path / "model.onnx")
    assert (code, kind) == (2, "SettingError") and "reference.rows" in message
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_missing_package_names_the_extra(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, kind, message = run(model, tmp_path / "model.onnx")
    assert (code, kind) == (2, "MissingExtraError") and "pip install 'ptad[onnx]'" in message


def test_a_file_that_differs_is_removed_and_the_old_one_kept(
    exported: tuple[Path, object], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph of the model, held against one whose scores are 0.1 % higher."""
    import onnx

    graph = onnx.load(exported[0])
    monkeypatch.setattr("ptad.export.graph.make_graph", lambda detector: graph)
    true_rows = writing.attribute_rows

    def other_rows(rows: np.ndarray, detector: Detector) -> object:
        score, terms, found = true_rows(rows, detector)
        return score * 1.001, terms, found

    out = tmp_path / "model.onnx"
    out.write_bytes(b"the old one")
    monkeypatch.setattr(writing, "attribute_rows", other_rows)
    code, kind, message = run(model, out)
    assert (code, kind) == (1, writing.ParityError.__name__) and "1.0e-03" in message
    assert out.read_bytes() == b"the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "model.onnx"]


def test_other_reasons_are_a_difference(
    exported: tuple[Path, object], mixed_model: PTAD, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_rows = writing.attribute_rows

    def other_rows(rows: np.ndarray, detector: Detector) -> object:
        score, terms, found = true_rows(rows, detector)
        return score, terms, replace(found, reason=(found.reason + 1) % 4)

    monkeypatch.setattr(writing, "attribute_rows", other_rows)
    with pytest.raises(writing.ParityError, match="in its reasons"):
        writing.check_parity(mixed_model.detector_, exported[0])
