"""Feature embedding and its inverse: every column has its own small affine map.

Shape
-----
x, missing   (n_rows, n_features)
embedding    (..., n_rows, n_features, embedding_dim)

NOTE[PAPER-08] As in NPT: Linear([value, mask bit] -> e) per column, LayerNorm over e, dropout. The mask bit is the
missing-value bit of the cell; the bias per column doubles as its column embedding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ptad.paper.layers import Dropout, Noise, uniform


class FeatureEmbedding(nn.Module):
    """One e-dimensional embedding per cell."""

    def __init__(self, generator: torch.Generator, n_features: int, dim: int, dropout: float, noise: Noise) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(2)
        self.value = uniform(generator, (n_features, dim), bound)
        self.missing = uniform(generator, (n_features, dim), bound)
        self.bias = uniform(generator, (n_features, dim), bound)
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.dropout = Dropout(dropout, noise)

    def forward(self, x: Tensor, missing: Tensor) -> Tensor:
        cell = x.unsqueeze(-1) * self.value + (missing.unsqueeze(-1) * self.missing + self.bias)
        return self.dropout(self.norm(cell))


class FeatureReadout(nn.Module):
    """The inverse: one number per cell from its embedding."""

    def __init__(self, generator: torch.Generator, n_features: int, dim: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(dim)
        self.weight = uniform(generator, (n_features, dim), bound)
        self.bias = uniform(generator, (n_features,), bound)

    def forward(self, embedding: Tensor) -> Tensor:
        return (embedding * self.weight).sum(dim=-1) + self.bias
