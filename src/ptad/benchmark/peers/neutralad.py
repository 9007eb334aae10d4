"""NeuTraL AD: learn views that resemble the row and differ from one another; anomalies cannot have both.

References
----------
Qiu et al. Neural transformation learning for deep anomaly detection beyond images. ICML 2021.

Departures
----------
* One setting for all tables; residual views only (the original picks residual or multiplicative per table).
* Eleven learned views beside the untouched row.
* The encoder's representation has 128 dimensions and no batch norm, as in the compared library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, mlp, stacked_weight


@dataclass(eq=False, kw_only=True)
class NeutralAD(DeepPeer):
    """Deterministic contrastive loss of learned views."""

    n_views: int = 11  # learned transformations
    hidden: int = 50  # width of each transformation
    temperature: float = 0.1  # of the contrastive loss

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return _Views(n_features, self.n_views, self.hidden, generator)

    def _score_batch(self, batch: Tensor) -> Tensor:
        return contrastive_loss(self._module(batch), self.temperature)


class _Views(nn.Module):
    """The row and its learned views, encoded: (n, d) -> (n, 1 + n_views, 128)."""

    def __init__(self, n_features: int, n_views: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = stacked_weight(n_views, n_features, hidden, generator)
        self.second = stacked_weight(n_views, hidden, n_features, generator)
        self.activation = nn.LeakyReLU()
        self.encoder = mlp((n_features, 100, 50, 128), generator, nn.LeakyReLU())

    def forward(self, x: Tensor) -> Tensor:
        change = torch.einsum("nd,vdh->nvh", x, self.first)
        change = torch.einsum("nvh,vhd->nvd", self.activation(change), self.second)
        views = torch.cat([x.unsqueeze(1), x.unsqueeze(1) + change], dim=1)
        encoded: Tensor = self.encoder(views)
        return encoded


def contrastive_loss(encoded: Tensor, temperature: float) -> Tensor:
    """Per row: every view close to the original (index 0) and far from the other views; (n, 1 + V, h) -> (n,)."""
    unit = nn.functional.normalize(encoded, dim=-1)
    similarity = unit @ unit.transpose(1, 2) / temperature
    n_views = encoded.shape[1] - 1
    itself = torch.eye(n_views + 1, dtype=torch.bool, device=encoded.device)
    # Row v of the denominator holds the original and all other views, not v itself.
    others = similarity.masked_fill(itself, -torch.inf)[:, 1:].logsumexp(-1)
    positive = similarity[:, 1:, 0]
    # |K log(1/K)| is 0 for a single view; then no scaling.
    scale = 1.0 / (n_views * math.log(n_views)) if n_views > 1 else 1.0
    return (others - positive).sum(1) * scale
