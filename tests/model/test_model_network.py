"""The whole network: equivariance, members, branches, missing values, and how it grows with the table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import plain_npt
import pytest
import torch

from ptad.model import Network
from ptad.training.loss import loss_parts

MakeNetwork = Callable[..., Network]
BACKBONES = ("npt", "transformer", "mlp")


def draw(n_members: int = 1, n_rows: int = 7, n_features: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    one = torch.randn(n_rows, n_features, generator=generator, dtype=torch.float64)
    return one.expand(n_members, -1, -1)


def test_network_equals_the_plain_implementation(make_network: MakeNetwork) -> None:
    """Algorithm 1, lines 4 to 10, written a second time."""
    network = make_network(3, abd_width=None)
    x = draw(n_features=3)
    output = network(x)
    backbone, rows = network.backbone, x[0].numpy()

    w = plain_npt.numbers(network.data_mask)
    hidden = np.maximum(rows @ w["first.weight"], 0)
    masked = rows / (1 + np.exp(-(np.maximum(hidden @ w["second.weight"], 0) @ w["third.weight"])))
    e = plain_npt.numbers(backbone.embedding)
    cells = masked[:, :, None] * e["value"] + e["bias"]
    cells = plain_npt.layer_norm(cells, e["norm.weight"], e["norm.bias"])
    latent = plain_npt.npt_layer(cells, backbone.encoder, 2).reshape(len(rows), -1)
    assert np.abs(output.latent[0].detach().numpy() - latent).max() < 1e-11

    readout = plain_npt.numbers(backbone.readout)
    for k, vector in enumerate(network.projection.basis_vectors[0].detach().numpy()):
        deviation = (latent - vector) ** 2
        kept = deviation <= deviation.mean(axis=1, keepdims=True)
        decoded = plain_npt.npt_layer((latent * kept).reshape(cells.shape), backbone.decoder, 2)
        expected = (decoded * readout["weight"]).sum(-1) + readout["bias"]
        assert np.abs(output.reconstructions[0, k].detach().numpy() - expected[None]).max() < 1e-10


@pytest.mark.parametrize("backbone", BACKBONES)
def test_row_permutation_equivariance(make_network: MakeNetwork, backbone: str) -> None:
    network = make_network(backbone=backbone)
    x, order = draw(n_rows=9), torch.tensor([3, 1, 8, 0, 2, 7, 5, 4, 6])
    plain, shuffled = network(x), network(x[:, order])
    assert torch.allclose(shuffled.reconstructions, plain.reconstructions[:, :, order], atol=1e-11)
    assert torch.allclose(shuffled.latent, plain.latent[:, order], atol=1e-11)
    if plain.association is not None:
        assert torch.allclose(shuffled.association, plain.association[:, order], atol=1e-11)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_with_a_reference_no_row_sees_another(make_network: MakeNetwork, backbone: str) -> None:
    network = make_network(backbone=backbone)
    reference = network(draw(n_rows=20)).reference
    x = draw(n_rows=5)
    together = network(x, reference).reconstructions
    alone = torch.cat([network(x[:, i : i + 1], reference).reconstructions for i in range(5)], dim=2)
    assert torch.allclose(together, alone, atol=1e-12)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("mask", ["none", "single", "multiple", "random"])
def test_a_member_is_the_same_network_alone_or_among_others(
    make_network: MakeNetwork, backbone: str, mask: str
) -> None:
    alone = make_network(seeds=(7,), backbone=backbone, projection_mask=mask)
    among = make_network(seeds=(5, 7, 9), backbone=backbone, projection_mask=mask)
    first, second = alone(draw(1)), among(draw(3))
    assert torch.allclose(first.reconstructions[0], second.reconstructions[1], atol=1e-12)
    assert torch.allclose(first.basis_squared[0], second.basis_squared[1], atol=1e-11)
    assert not torch.allclose(second.reconstructions[0], second.reconstructions[1])


@pytest.mark.parametrize("backbone", BACKBONES)
def test_gradients_of_members_do_not_mix(make_network: MakeNetwork, backbone: str) -> None:
    x = draw(3)
    among = make_network(seeds=(5, 7, 9), backbone=backbone)
    loss_parts(among, among(x), x)[0, 1].backward()
    alone = make_network(seeds=(7,), backbone=backbone)
    loss_parts(alone, alone(x[:1]), x[:1])[0, 0].backward()
    for (name, many), one in zip(among.named_parameters(), alone.parameters(), strict=True):
        if many.grad is None:
            assert one.grad is None, name
            continue
        assert not many.grad[[0, 2]].any(), name
        assert torch.allclose(many.grad[1], one.grad[0], atol=1e-10), name


def test_branches_as_one_batch_equal_a_loop_over_branches(make_network: MakeNetwork) -> None:
    network = make_network(seeds=(0, 1))
    output = network(draw(2))
    assert output.projection_masks is not None
    calls = []
    for k in range(5):
        masked = output.latent.unsqueeze(1) * output.projection_masks[:, k : k + 1]
        calls.append(network.backbone.decode(masked, None))
    looped = torch.cat([reconstruction for reconstruction, _, _ in calls], dim=1)
    assert torch.allclose(output.reconstructions, looped, atol=1e-12)
    assert torch.allclose(output.association, torch.stack([pi for _, _, pi in calls]).mean(0), atol=1e-12)


def test_the_decoder_runs_once_for_all_branches(make_network: MakeNetwork) -> None:
    network, calls = make_network(), []
    network.backbone.decoder.register_forward_hook(lambda *_: calls.append(1))
    network(draw())
    assert calls == [1]


def test_missing_cells_are_told_apart_from_zeros(make_network: MakeNetwork) -> None:
    network = make_network()
    x = draw().clone()
    x[0, 2, 1] = 0.0
    zero = network(x).latent
    x[0, 2, 1] = float("nan")
    missing = network(x).latent
    assert torch.isfinite(missing).all() and not torch.allclose(zero[0, 2], missing[0, 2])


def test_input_noise_only_in_training_and_never_on_missing_cells(make_network: MakeNetwork) -> None:
    network = make_network(input_noise=0.5, dropout=0.0, backbone="mlp")
    x = draw().clone()
    quiet = network(x).latent
    assert torch.equal(quiet, network(x).latent)
    network.noise.generator = torch.Generator().manual_seed(0)
    assert not torch.allclose(quiet, network(x).latent)
    x[:] = float("nan")
    assert torch.equal(network(x).latent, network(x).latent)


def test_shapes(make_network: MakeNetwork) -> None:
    network = make_network(4, seeds=(0, 1), n_prototypes=3)
    output = network(draw(2))
    shapes = {f.name: tuple(getattr(output, f.name).shape) for f in fields(output) if f.name != "reference"}
    assert shapes == {
        "reconstructions": (2, 5, 7, 4),
        "latent": (2, 7, 16),
        "data_mask": (2, 7, 4),
        "projection_masks": (2, 5, 7, 16),
        "basis_squared": (2, 7, 5),
        "association": (2, 7, 4),
        "prototype_squared": (2, 7, 3),
    }


def test_number_of_parameters_of_the_paper_preset() -> None:
    """At d = 21 and e = 16, four blocks, embedding, readout, data mask, basis vectors and prototypes."""
    from ptad.config import PRESETS

    d, e = 21, 16
    network = Network([torch.Generator()], d, PRESETS["paper"])
    blocks = 2 * sum(13 * w**2 + 14 * w for w in (d * e, e))
    embedding, readout = 3 * d * e + 2 * e, d * e + d
    assert network.n_parameters == blocks + embedding + readout + 3 * d * d + 5 * d * e + 5 * d


STEP_OF_A_WIDE_TABLE = """
import resource, sys
import numpy as np, torch
torch.set_num_threads(1)
from ptad.config import PRESETS
from ptad.model import Network
from ptad.training import Data, Trainer
config = PRESETS[sys.argv[1]]
generator = torch.Generator().manual_seed(0)
network = Network([generator], 500, config)
x = torch.randn(600, 500, generator=generator)
trainer = Trainer(network, Data(x, torch.arange(600)[None], None), config, generator, config.batch_size)
trainer.rows.copy_(trainer._draw(1)[0])
before = next(network.parameters()).detach().clone()
trainer._step(0)
assert torch.isfinite(trainer.sums).all()
assert not torch.equal(before, next(network.parameters()))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_500_columns_train_within_4_gb(preset: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", STEP_OF_A_WIDE_TABLE, preset], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 4.0
