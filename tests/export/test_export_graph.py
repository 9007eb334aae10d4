"""The graph says what the detector says: its operations, the module it is traced from, and the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptad import PTAD
from ptad.attribution import final_contributions
from ptad.explanation import attribute_rows
from ptad.export.graph import TRACED_ON, DetectorGraph, trace_module
from ptad.export.operations import PlainOperations, gelu, leaky_relu
from ptad.export.runner import Runner
from ptad.export.writing import BATCHES, export_model, probe_rows


def test_gelu_is_exact_to_the_last_digits() -> None:
    x = torch.cat(
        [torch.linspace(-40, 40, 200_001, dtype=torch.float64), torch.tensor([0.0, -1e30, 1e30], dtype=torch.float64)]
    )
    exact = torch.tensor([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.tolist()], dtype=torch.float64)
    assert (gelu(x) - exact).abs().max() < 1e-12


def test_leaky_relu_is_torch_s() -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    torch.testing.assert_close(leaky_relu(x, 0.2), F.leaky_relu(x, 0.2), rtol=0, atol=1e-15)


class Algebra(nn.Module):
    """The operations that are translated."""

    def forward(self, x: Tensor, knots: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        square = x @ x.mT + 0.25 * torch.eye(5, dtype=torch.float64)
        factor = torch.linalg.cholesky_ex(square).L
        solved = torch.linalg.solve_triangular(factor, x, upper=False)
        return factor, solved, torch.searchsorted(knots, values), torch.searchsorted(knots, values, right=True)


@pytest.mark.parametrize("m", [1, 8, 9])
def test_translated_operations_are_torch_s(m: int) -> None:
    generator = torch.Generator().manual_seed(m)
    knots = torch.randint(0, 5, (3, m), generator=generator).sort(dim=1).values.double()

    def inputs(n: int) -> dict[str, Tensor]:
        x = torch.randn(n, 5, 4, generator=generator, dtype=torch.float64)
        return {"x": x, "knots": knots, "values": torch.randint(-1, 7, (3, n), generator=generator).double()}

    free = torch.export.Dim("n", min=1)
    graph = trace_module(Algebra(), inputs(3), ({0: free}, {}, {1: free}), ("factor", "solved", "below", "up_to"))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    for n in (1, 20):
        given = inputs(n)
        found = session.run(None, {name: values.numpy() for name, values in given.items()})
        for one, other in zip(found, Algebra()(**given), strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-12, atol=1e-12)


def test_functions_are_replaced_only_within() -> None:
    x = torch.linspace(-2, 2, 9)
    with PlainOperations():
        inside = F.gelu(x)
    assert torch.equal(inside, gelu(x))
    assert torch.equal(F.gelu(x), torch._C._nn.gelu(x))


@pytest.mark.parametrize(
    ("preset", "config"),
    [
        ("default", {}),
        ("default", {"reference.neighbours": 1, "calibration.method": "none"}),
        ("paper", {}),
        ("paper", {"network.backbone": "mlp", "network.projection_mask": "random", "network.basis_distance": "mse"}),
        ("paper", {"network.backbone": "transformer", "network.projection_mask": "none"}),
    ],
)
def test_module_scores_as_the_detector(
    preset: str, config: dict[str, Any], make_detector: Callable[..., PTAD], rows: np.ndarray, tmp_path: Path
) -> None:
    if preset == "paper":
        pytest.importorskip("pytorch_optimizer")
        config = {"network.n_steps": 3, **config}
    make_detector(preset, config).fit(rows).save(tmp_path / "model")
    traced = PTAD.load(tmp_path / "model", device=TRACED_ON).detector_
    detector = PTAD.load(tmp_path / "model", device="cpu").detector_
    x = probe_rows(detector, 64)
    with torch.no_grad():
        score, terms, contributions, reasons, partners = (t.numpy() for t in DetectorGraph(traced)(torch.from_numpy(x)))
    expected, by_term, found = attribute_rows(x, detector)
    settled_ones = final_contributions(found.contributions, found.as_expected, expected)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(score, expected, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(terms, by_term, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(contributions, settled_ones, rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_array_equal(reasons, found.reason)
    np.testing.assert_array_equal(partners, found.partner)


def test_command_reports_parity_at_all_batch_sizes(exported: tuple[Path, dict[str, Any]]) -> None:
    path, said = exported
    assert said["bytes"] == path.stat().st_size
    assert [int(n) for n in said["parity"]] == list(BATCHES)
    assert all(difference < 1e-6 for difference in said["parity"].values())


def test_file_scores_any_batch_alike(exported: tuple[Path, dict[str, Any]], mixed_model: PTAD) -> None:
    runner, x = Runner(exported[0]), probe_rows(mixed_model.detector_, 50)
    expected = mixed_model.detector_.scores(x)
    for n in (1, 7, 50):
        said = runner.run(x, chunk_rows=n)
        np.testing.assert_allclose(said.score, expected, rtol=1e-6)
        np.testing.assert_allclose(said.terms.sum(axis=1), said.score, rtol=1e-6)
        np.testing.assert_allclose(said.contributions.sum(axis=1), said.score, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_presets_are_exported(
    preset: str, make_detector: Callable[..., PTAD], rows: np.ndarray, tmp_path: Path
) -> None:
    if preset == "paper":
        pytest.importorskip("pytorch_optimizer")
    model = make_detector(preset).fit(rows)
    model.save(tmp_path / "model")
    done = export_model(tmp_path / "model", tmp_path / "model.onnx")
    assert max(done.parity.values()) < 1e-6
    np.testing.assert_allclose(Runner(done.path).score(rows).score, model.anomaly_score(rows), rtol=1e-6, atol=1e-6)
