"""The projection space (P-space): basis vectors, the cost to each, and the masks made from them (Eq. 4).

Shape
-----
latent            (n_members, n_rows, latent_dim)
basis_vectors     (n_members, n_basis_vectors, latent_dim)
projection_masks  (n_members, n_branches, n_rows, latent_dim), 1 = kept
cost              (n_members, n_rows, n_basis_vectors)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ptad.config import Config
from ptad.model.layers import Generators, Noise, normal


class ProjectionSpace(nn.Module):
    """Compares each latent with each basis vector, element by element."""

    random_ranks: Tensor

    def __init__(self, generators: Generators, latent_dim: int, config: Config, noise: Noise) -> None:
        super().__init__()
        self.mask_kind = config.projection_mask
        self.sampled_branch = config.sampled_branch
        self.noise = noise
        self.basis_vectors = normal(generators, (config.n_basis, latent_dim))
        if self.mask_kind == "random":
            # Outside training the "random" positions are fixed, so that a row's score never changes.
            ranks = [
                torch.stack([torch.randperm(latent_dim, generator=g) for _ in range(config.n_basis)])
                for g in generators
            ]
            self.register_buffer("random_ranks", torch.stack(ranks).unsqueeze(2))

    def forward(self, latent: Tensor, branch: Tensor | None = None) -> tuple[Tensor | None, Tensor]:
        """Return the masks (None without masking) and the squared distance to every basis vector.

        With ``branch`` (n_members, n_rows), only the mask of that basis vector is made for each row.
        """
        if self.mask_kind == "none":
            return None, self._squared(latent)
        if branch is None and self.sampled_branch and self.noise.active:
            # The mean over branches in expectation, at 1/K of the cost.
            shape = latent.shape[:2]
            branch = torch.randint(
                self.basis_vectors.shape[1], shape, generator=self.noise.generator, device=latent.device
            )
        if branch is None:
            deviation = (latent.unsqueeze(1) - self.basis_vectors.unsqueeze(2)).square()
            return self._masks(deviation.detach()).to(latent.dtype), deviation.sum(dim=-1).transpose(1, 2)
        index = branch.unsqueeze(-1).expand(-1, -1, latent.shape[-1])
        chosen = (latent - self.basis_vectors.gather(1, index)).square().unsqueeze(1)
        return self._masks(chosen.detach()).to(latent.dtype), self._squared(latent)

    def _squared(self, latent: Tensor) -> Tensor:
        """Return the squared distances by one matrix product; rounding may leave them a hair below zero."""
        basis = self.basis_vectors
        product = latent @ basis.transpose(1, 2)
        squares = latent.square().sum(dim=-1, keepdim=True) + basis.square().sum(dim=-1).unsqueeze(1)
        return squares - 2.0 * product

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
    """Return ||B B^T - I||_F^2 of the normalised basis vectors (Eq. 6), one value per member."""
    unit = torch.nn.functional.normalize(basis_vectors, dim=-1)
    gram = unit @ unit.transpose(-1, -2)
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return (gram - identity).square().sum(dim=(-1, -2))
