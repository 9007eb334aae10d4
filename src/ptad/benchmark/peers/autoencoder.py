"""A plain autoencoder: the simplest deep detector, and the one the paper's comparison leaves out.

Departures
----------
There is no original to depart from. Widths d-128-64-m-64-128-d with a bottleneck of half the columns (at most 32),
ReLU, biases; the score is the squared reconstruction error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, mlp


@dataclass(eq=False, kw_only=True)
class Autoencoder(DeepPeer):
    """Squared reconstruction error of a bottleneck MLP."""

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        bottleneck = max(1, min(32, n_features // 2))
        return mlp((n_features, 128, 64, bottleneck, 64, 128, n_features), generator, nn.ReLU(), bias=True)

    def _score_batch(self, batch: Tensor) -> Tensor:
        return (self._module(batch) - batch).square().sum(1)
