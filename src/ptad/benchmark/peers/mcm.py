"""MCM: reconstruct a row from several learned soft maskings of it.

References
----------
Yin et al. MCM: Masked cell modeling for anomaly detection in tabular data. ICLR 2024.

Departures
----------
* One learning rate (0.05) and one diversity weight for all tables; the original tunes both per table.
* A fixed number of epochs, and no choice of the epoch by test results.
* As in the original's code, the diversity term compares the generators' outputs before the sigmoid.
* The fifteen mask generators are one batched product instead of fifteen modules; the mathematics is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, TrainingSettings, mlp, stacked_weight


@dataclass(eq=False, kw_only=True)
class Mcm(DeepPeer):
    """Mean reconstruction error over learned masks."""

    default_training = TrainingSettings(epochs=200, batch_size=512, learning_rate=0.05, weight_decay=1e-5, decay=0.98)

    n_masks: int = 15  # mask generators
    diversity_weight: float = 5.0  # of the term that keeps the masks apart
    temperature: float = 0.1  # of that term

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return _MaskedAutoencoder(n_features, self.n_masks, generator)

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        reconstructions, raw_masks = self._module(batch)[:2]
        diversity = diversity_loss(raw_masks, self.temperature).mean()
        return reconstruction_error(batch, reconstructions).mean() + self.diversity_weight * diversity

    def _score_batch(self, batch: Tensor) -> Tensor:
        return reconstruction_error(batch, self._module(batch)[0])


class MaskGenerators(nn.Module):
    """``n_masks`` independent three-layer nets without bias: (n, d) -> masks before the sigmoid (n, n_masks, d)."""

    def __init__(self, n_features: int, n_masks: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = stacked_weight(n_masks, n_features, n_features, generator)
        self.second = stacked_weight(n_masks, n_features, n_features, generator)
        self.third = stacked_weight(n_masks, n_features, n_features, generator)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.einsum("nd,mde->mne", x, self.first).relu()
        hidden = torch.bmm(hidden, self.second).relu()
        return torch.bmm(hidden, self.third).transpose(0, 1)


class _MaskedAutoencoder(nn.Module):
    """Masks, then one shared autoencoder for all masked copies of a row."""

    def __init__(self, n_features: int, n_masks: int, generator: torch.Generator) -> None:
        super().__init__()
        self.masks = MaskGenerators(n_features, n_masks, generator)
        self.encoder = mlp((n_features, 256, 256, 128), generator, nn.LeakyReLU(0.2))
        self.decoder = mlp((128, 256, 256, n_features), generator, nn.LeakyReLU(0.2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) -> reconstructions and masks before the sigmoid, both (n, n_masks, d)."""
        raw_masks = self.masks(x)
        return self.decoder(self.encoder(x.unsqueeze(1) * raw_masks.sigmoid())), raw_masks


def reconstruction_error(x: Tensor, reconstructions: Tensor) -> Tensor:
    """Euclidean norm of the residual, mean over the masks: (n, d), (n, m, d) -> (n,)."""
    return torch.linalg.vector_norm(reconstructions - x.unsqueeze(1), dim=2).mean(1)


def diversity_loss(masks: Tensor, temperature: float) -> Tensor:
    """Per row: log of the summed similarities of each mask to the others, scaled by 1/|K log(1/K)|, K = m - 1."""
    unit = nn.functional.normalize(masks, dim=-1)
    similarity = unit @ unit.transpose(1, 2) / temperature
    itself = torch.eye(masks.shape[1], dtype=torch.bool, device=masks.device)
    others = similarity.masked_fill(itself, -torch.inf).logsumexp(-1)
    n_others = masks.shape[1] - 1
    scale = 1.0 / (n_others * math.log(n_others)) if n_others > 1 else 1.0
    return others.sum(1) * scale
