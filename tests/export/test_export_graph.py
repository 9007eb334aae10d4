"""The graph says what the scorer says: its operations, the module it is traced from, and the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ptad import PTAD
from ptad.export.graph import ScorerGraph
from ptad.export.operations import PlainOperations, gelu, leaky_relu, solve
from ptad.export.parity import BATCHES, probe_rows
from ptad.export.runner import Runner
from ptad.export.writing import export_model
from ptad.scoring import PART_NAMES


def test_gelu_is_exact_to_the_last_digits() -> None:
    x = torch.cat(
        [torch.linspace(-40, 40, 200_001, dtype=torch.float64), torch.tensor([0.0, -1e30, 1e30], dtype=torch.float64)]
    )
    exact = torch.tensor([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.tolist()], dtype=torch.float64)
    assert (gelu(x) - exact).abs().max() < 1e-12


def test_leaky_relu_is_torch_s() -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    torch.testing.assert_close(leaky_relu(x, 0.2), F.leaky_relu(x, 0.2), rtol=0, atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 16])
def test_solve_is_exact_for_positive_definite_systems(k: int) -> None:
    generator = torch.Generator().manual_seed(k)
    factor = torch.randn(50, k, 4, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT + 0.3 * torch.eye(k, dtype=torch.float64)
    right = torch.randn(50, k, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(solve(torch.cat([matrix, right], dim=-1)), torch.linalg.solve(matrix, right))


def test_functions_are_replaced_only_within() -> None:
    x = torch.linspace(-2, 2, 9)
    with PlainOperations():
        inside = F.gelu(x)
    assert torch.equal(inside, gelu(x))
    assert torch.equal(F.gelu(x), torch._C._nn.gelu(x))


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("default", {}),
        ("default", {"n_neighbours": 0}),
        ("default", {"backbone": "mlp", "projection_mask": "random"}),
        ("paper", {}),
        ("paper", {"n_neighbours": 3, "n_passes": 2, "basis_distance": "mse"}),
        ("paper", {"backbone": "transformer", "projection_mask": "none", "matching": "product_min"}),
    ],
)
def test_module_scores_as_the_scorer(
    preset: str, fields: dict[str, Any], make_detector: Callable[..., PTAD], rows: np.ndarray
) -> None:
    pytest.importorskip("pytorch_optimizer")
    model = make_detector(preset, n_steps=3, **fields).fit(rows)
    x = probe_rows(model, 64)
    with torch.inference_mode():
        score, parts, contributions = (t.numpy() for t in ScorerGraph(model.scorer_)(torch.from_numpy(x)))
    expected = model.scorer_.parts(x)
    np.testing.assert_allclose(score, expected.score, rtol=1e-6)
    scale = expected.score[:, None]
    np.testing.assert_allclose(
        parts / scale, np.stack([getattr(expected, n) for n in PART_NAMES], 1) / scale, atol=1e-6
    )
    np.testing.assert_allclose(contributions / scale, model.scorer_.cells(x).contributions / scale, atol=1e-6)
    np.testing.assert_allclose(contributions.sum(axis=1), score, rtol=1e-5)


def test_command_reports_parity_at_all_batch_sizes(exported: tuple[Path, dict[str, Any]]) -> None:
    path, said = exported
    assert said["bytes"] == path.stat().st_size
    assert [int(n) for n in said["parity"]] == list(BATCHES)
    assert all(difference < 1e-6 for difference in said["parity"].values())


def test_file_scores_any_batch_alike(exported: tuple[Path, dict[str, Any]], mixed_model: PTAD) -> None:
    runner, x = Runner(exported[0]), probe_rows(mixed_model, 50)
    expected = mixed_model.scorer_.parts(x).score
    for n in (1, 7, 50):
        score, parts, contributions = runner.run(x, chunk_rows=n)
        np.testing.assert_allclose(score, expected, rtol=1e-6)
        np.testing.assert_allclose(parts.sum(axis=1), score, rtol=1e-5)
        np.testing.assert_allclose(contributions.sum(axis=1), score, rtol=1e-5)


@pytest.mark.slow
def test_paper_preset_is_exported_with_its_reference_rows(
    make_detector: Callable[..., PTAD], rows: np.ndarray, tmp_path: Path
) -> None:
    pytest.importorskip("pytorch_optimizer")
    model = make_detector("paper", n_steps=3).fit(rows)
    model.save(tmp_path / "model")
    done = export_model(tmp_path / "model", tmp_path / "model.onnx")
    assert max(done.parity.values()) < 1e-6
    np.testing.assert_allclose(Runner(done.path).score(rows).score, model.anomaly_score(rows), rtol=1e-6)
