"""The attention block and the NPT layer, against a plain second implementation in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plain_npt
import pytest
import torch

from ptad.paper.attention import AttentionBlock, KeysValues
from ptad.paper.layers import Noise
from ptad.paper.network import Network
from ptad.paper.npt import FALLBACK_ABD_WIDTH, BetweenDatapoints, NPTLayer
from ptad.paper.settings import NetworkSettings

MakeNetwork = Callable[..., Network]


def make_block(width: int = 8, n_heads: int = 2, seed: int = 0) -> AttentionBlock:
    generator = torch.Generator().manual_seed(seed)
    block = AttentionBlock(generator, width, NetworkSettings(embedding_dim=width, n_heads=n_heads), Noise()).double()
    for parameter in block.parameters():  # gains and shifts of the norms too: at 1 and 0 a mistake would hide
        parameter.data.add_(torch.empty_like(parameter).normal_(0, 0.1, generator=generator))
    return block


def draw(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("width", "n_heads"), [(8, 1), (8, 2), (12, 4)])
def test_block_equals_the_plain_implementation(width: int, n_heads: int) -> None:
    block = make_block(width, n_heads)
    x = draw(3, 5, width)
    found = block(x)[0].detach().numpy()
    p = plain_npt.numbers(block)
    for s in range(3):
        items = x[s].numpy()
        assert np.abs(found[s] - plain_npt.attend(items, items, p, n_heads)).max() < 1e-12


def test_block_with_a_reference_looks_at_the_reference_and_at_itself() -> None:
    block = make_block()
    reference, x = draw(1, 7, 8), draw(1, 4, 8, seed=2)
    _, _, keys, values = block(reference)
    found = block(x, KeysValues(keys, values))[0].detach().numpy()[0]
    plain = plain_npt.attend(x[0].numpy(), reference[0].numpy(), plain_npt.numbers(block), 2, own=True)
    assert np.abs(found - plain).max() < 1e-12


@pytest.mark.parametrize("width", [4, 16, 64])
def test_number_of_parameters(width: int) -> None:
    block = make_block(width)
    assert sum(p.numel() for p in block.parameters()) == 13 * width**2 + 14 * width


def test_dropout_path_equals_the_fused_path_without_dropout() -> None:
    block = make_block()
    x = draw(2, 5, 8)
    expected = block(x)[0]
    block.dropout.rate, block.dropout.noise.generator = 1e-12, torch.Generator().manual_seed(0)
    assert torch.allclose(block(x)[0], expected, atol=1e-10)


def test_dropout_draws_from_its_own_generator_only() -> None:
    block = make_block()
    x = draw(2, 5, 8)
    before = torch.get_rng_state()
    outputs = []
    for seed in (0, 0, 1):
        block.dropout.noise.generator = torch.Generator().manual_seed(seed)
        outputs.append(block(x)[0])
    assert torch.equal(outputs[0], outputs[1]) and not torch.equal(outputs[0], outputs[2])
    assert torch.equal(before, torch.get_rng_state())


def test_npt_layer_equals_the_plain_implementation() -> None:
    settings = NetworkSettings(embedding_dim=4, n_heads=2)
    layer = NPTLayer(torch.Generator().manual_seed(0), 3, settings, Noise()).double()
    cells = draw(2, 6, 3, 4)
    found, _, _ = layer(cells)
    for branch in range(2):
        plain = plain_npt.npt_layer(cells[branch].numpy(), layer, 2)
        assert np.abs(found[branch].detach().numpy() - plain).max() < 1e-11


def test_aba_never_mixes_rows() -> None:
    settings = NetworkSettings(embedding_dim=4, n_heads=2)
    layer = NPTLayer(torch.Generator().manual_seed(0), 3, settings, Noise(), datapoints=False).double()
    cells = draw(1, 6, 3, 4)
    changed = cells.clone()
    changed[:, 2] += 1.0
    before, keys_values, pi_before = layer(cells)
    after, _, pi_after = layer(changed)
    others = [0, 1, 3, 4, 5]
    assert keys_values is None
    assert torch.equal(before[:, others], after[:, others])
    assert torch.equal(pi_before[:, others], pi_after[:, others])
    assert not torch.allclose(before[:, 2], after[:, 2])


def test_abd_mixes_rows() -> None:
    settings = NetworkSettings(embedding_dim=4, n_heads=2)
    layer = NPTLayer(torch.Generator().manual_seed(0), 3, settings, Noise()).double()
    cells = draw(1, 6, 3, 4)
    changed = cells.clone()
    changed[:, 2] += 1.0
    assert not torch.allclose(layer(cells)[0][:, 0], layer(changed)[0][:, 0])


def test_association_vectors_equal_their_formula(make_network: MakeNetwork) -> None:
    network = make_network(3, abd_width=None)
    output = network(draw(5, 3))
    assert output.projection_masks is not None and output.association is not None
    decoder = network.backbone.decoder
    masked = (output.latent * output.projection_masks).unflatten(-1, (3, 4))
    inner, _ = decoder.between_datapoints(masked)
    plain = [plain_npt.associations(branch, decoder.between_attributes.block, 2) for branch in inner.detach().numpy()]
    assert np.abs(output.association.detach().numpy() - np.mean(plain, axis=0)).max() < 1e-12


@pytest.mark.parametrize(
    ("fields", "factorised", "inner"),
    [
        ({"abd_width": None}, False, 40),
        ({"abd_width": 8}, True, 8),
        ({"abd_width": 64}, False, 40),  # not wider than the table itself
        ({"abd_width": None, "abd_full_limit": 39}, False, 40),  # the fallback is wider than 40
    ],
)
def test_when_the_abd_is_factorised(fields: dict[str, int | None], factorised: bool, inner: int) -> None:
    settings = NetworkSettings(embedding_dim=4, n_heads=2, **fields)
    abd = BetweenDatapoints(torch.Generator(), 10, settings, Noise())
    assert abd.factorised is factorised and abd.block.query.weight.shape[-1] == inner


def test_wide_tables_fall_back_to_the_factorised_abd() -> None:
    settings = NetworkSettings()
    wide = BetweenDatapoints(torch.Generator(), 500, settings, Noise())
    assert wide.factorised and wide.block.query.weight.shape[-1] == FALLBACK_ABD_WIDTH
    assert not BetweenDatapoints(torch.Generator(), 21, settings, Noise()).factorised


def test_the_fallback_width_suits_any_number_of_heads() -> None:
    settings = NetworkSettings(embedding_dim=3, n_heads=3, abd_full_limit=0)
    abd = BetweenDatapoints(torch.Generator().manual_seed(0), 50, settings, Noise())
    cells, _ = abd(torch.ones(1, 2, 50, 3))
    assert torch.isfinite(cells).all()


def test_factorised_abd_adds_to_its_input() -> None:
    settings = NetworkSettings(embedding_dim=4, n_heads=2, abd_width=8)
    abd = BetweenDatapoints(torch.Generator().manual_seed(0), 5, settings, Noise()).double()
    cells = draw(1, 6, 5, 4)
    p = plain_npt.numbers(abd.block)
    rows = cells[0].flatten(1).numpy()
    outer = plain_npt.numbers(abd)
    narrow = plain_npt.linear(rows, outer, "down")
    plain = rows + plain_npt.linear(plain_npt.attend(narrow, narrow, p, 2), outer, "up")
    assert np.abs(abd(cells)[0][0].flatten(1).detach().numpy() - plain).max() < 1e-12
