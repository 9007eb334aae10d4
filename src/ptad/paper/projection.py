"""The projection space (P-space): basis vectors, the cost to each, and the masks made from them (Eq. 4).

Shape
-----
latent            (n_rows, latent_dim)
basis_vectors     (n_basis_vectors, latent_dim)
projection_masks  (n_branches, n_rows, latent_dim), 1 = kept
squared           (n_rows, n_basis_vectors)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ptad.paper.layers import Noise, normal
from ptad.paper.settings import NetworkSettings


class ProjectionSpace(nn.Module):
    """Compares each latent with each basis vector, element by element."""

    random_ranks: Tensor

    def __init__(self, generator: torch.Generator, latent_dim: int, settings: NetworkSettings, noise: Noise) -> None:
        super().__init__()
        self.mask_kind = settings.projection_mask
        self.noise = noise
        self.basis_vectors = normal(generator, (settings.n_basis, latent_dim))
        if self.mask_kind == "random":
            # Outside training the "random" positions are fixed, so that a row's score never changes.
            ranks = [torch.randperm(latent_dim, generator=generator) for _ in range(settings.n_basis)]
            self.register_buffer("random_ranks", torch.stack(ranks).unsqueeze(1))

    def forward(self, latent: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the masks (None without masking) and the squared distance to every basis vector."""
        deviation = (latent - self.basis_vectors.unsqueeze(1)).square()
        masks = None if self.mask_kind == "none" else self._masks(deviation.detach()).to(latent.dtype)
        return masks, deviation.sum(dim=-1).transpose(0, 1)

    def _masks(self, deviation: Tensor) -> Tensor:
        learned = deviation <= deviation.mean(dim=-1, keepdim=True)
        if self.mask_kind != "random":
            return learned
        # As many positions as the learned mask would keep, but anywhere.
        n_kept = learned.sum(dim=-1, keepdim=True)
        if not self.noise.active:
            return self.random_ranks < n_kept
        draws = torch.rand(deviation.shape, generator=self.noise.generator, device=deviation.device)
        return draws.argsort(dim=-1).argsort(dim=-1) < n_kept


def orthogonality(basis_vectors: Tensor) -> Tensor:
    """Return ||B B^T - I||_F^2 of the normalised basis vectors (Eq. 6), a single number."""
    unit = torch.nn.functional.normalize(basis_vectors, dim=-1)
    gram = unit @ unit.transpose(-1, -2)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return (gram - identity).square().sum()
