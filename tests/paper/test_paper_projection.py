"""Masks and basis vectors of the P-space, and the mask of the data space, against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ptad.paper.data_mask import MAX_HIDDEN_WIDTH, DataMask
from ptad.paper.layers import Noise
from ptad.paper.network import Network
from ptad.paper.projection import ProjectionSpace, orthogonality
from ptad.paper.settings import NetworkSettings

MakeNetwork = Callable[..., Network]


def make_space(kind: str, latent_dim: int = 12, noise: Noise | None = None, **fields: Any) -> ProjectionSpace:
    settings = NetworkSettings(projection_mask=kind, **fields)
    return ProjectionSpace(torch.Generator().manual_seed(0), latent_dim, settings, noise or Noise()).double()


def draw_latent(n_rows: int = 9, latent_dim: int = 12) -> torch.Tensor:
    return torch.randn(n_rows, latent_dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def defined_mask(latent: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Eq. 4, cell by cell."""
    mask = np.zeros((len(basis), *latent.shape))
    for k in range(len(basis)):
        for n in range(len(latent)):
            mu = sum((latent[n, h] - basis[k, h]) ** 2 for h in range(latent.shape[1])) / latent.shape[1]
            for h in range(latent.shape[1]):
                mask[k, n, h] = 1.0 if (latent[n, h] - basis[k, h]) ** 2 <= mu else 0.0
    return mask


@pytest.mark.parametrize(("kind", "n_branches"), [("multiple", 5), ("single", 1)])
def test_mask_equals_its_definition(kind: str, n_branches: int) -> None:
    space, latent = make_space(kind), draw_latent()
    masks, squared = space(latent)
    basis = space.basis_vectors.detach().numpy()
    assert masks is not None and masks.shape == (n_branches, 9, 12)
    assert np.array_equal(masks.numpy(), defined_mask(latent.numpy(), basis))
    expected = ((latent.numpy()[:, None] - basis[None]) ** 2).sum(-1)
    assert np.allclose(squared.detach().numpy(), expected, atol=1e-12)


def test_no_mask() -> None:
    assert make_space("none")(draw_latent())[0] is None


@pytest.mark.parametrize("training", [False, True])
def test_random_masks_hide_as_much_of_each_row_as_the_learned_ones(training: bool) -> None:
    noise = Noise()
    space, latent = make_space("random", noise=noise), draw_latent()
    learned = defined_mask(latent.numpy(), space.basis_vectors.detach().numpy())
    noise.generator = torch.Generator().manual_seed(5) if training else None
    masks = space(latent)[0]
    assert masks is not None
    assert np.array_equal(masks.sum(-1).numpy(), learned.sum(-1))
    assert not np.array_equal(masks.numpy(), learned)


def test_random_masks_change_in_training_and_are_fixed_outside() -> None:
    noise = Noise()
    space, latent = make_space("random", noise=noise), draw_latent()
    assert torch.equal(space(latent)[0], space(latent)[0])
    # a row's mask does not depend on the rows beside it
    assert torch.equal(space(latent)[0][:, 3:4], space(latent[3:4])[0])
    noise.generator = torch.Generator().manual_seed(5)
    assert not torch.equal(space(latent)[0], space(latent)[0])


def test_orthogonality_is_exactly_zero_for_orthogonal_bases() -> None:
    axes = torch.eye(7, dtype=torch.float64)[:4] * torch.tensor([[1.0], [2.0], [0.5], [4.0]], dtype=torch.float64)
    assert float(orthogonality(axes)) == 0.0
    random = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(orthogonality(torch.linalg.qr(random).Q.T)) < 1e-28


def test_orthogonality_by_hand() -> None:
    basis = torch.tensor([[2.0, 0.0], [3.0, 3.0]], dtype=torch.float64)  # cosine 1/sqrt(2), twice off the diagonal
    assert abs(float(orthogonality(basis)) - 1.0) < 1e-14


def test_data_mask_equals_eq_3() -> None:
    mask = DataMask(torch.Generator().manual_seed(0), 5).double()
    x = draw_latent(6, 5)
    w1, w2, w3 = (getattr(mask, name).weight.detach().numpy() for name in ("first", "second", "third"))
    hidden = np.maximum(np.maximum(x.numpy() @ w1, 0) @ w2, 0) @ w3
    assert np.allclose(mask(x).detach().numpy(), 1 / (1 + np.exp(-hidden)), atol=1e-14)
    assert sum(p.numel() for p in mask.parameters()) == 3 * 5 * 5


def test_data_mask_of_a_wide_table_stays_small() -> None:
    mask = DataMask(torch.Generator(), 2 * MAX_HIDDEN_WIDTH)
    assert mask.second.weight.shape == (MAX_HIDDEN_WIDTH, MAX_HIDDEN_WIDTH)


def test_the_data_mask_can_be_switched_off(make_network: MakeNetwork) -> None:
    network = make_network(data_mask=False)
    assert network.data_mask is None and network(draw_latent(6, 4)).data_mask is None
