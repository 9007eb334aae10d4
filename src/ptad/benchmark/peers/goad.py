"""GOAD: classify random affine views of a row; the views of an anomaly are confused with one another.

References
----------
Bergman, Hoshen. Classification-based anomaly detection for general data. ICLR 2020.

Departures
----------
* One setting for all tables (256 maps to 32 dimensions, 8 channels, margin 1) instead of one per table.
* The mean representation of each map is computed from the training rows at the end of ``fit`` and kept. Some
  implementations recompute it from what is being scored, which leaks the test rows into the score.
* The maps have no offset in the compared implementation, and none here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, linear, mlp

_FAR = 1e6  # excludes a view's own centre from the search for the nearest other one


@dataclass(eq=False, kw_only=True)
class Goad(DeepPeer):
    """Negative log-probability that each view lies nearest to its own centre, summed over the views."""

    chunk_rows = 256

    n_maps: int = 256  # random maps
    map_dim: int = 32  # their output dimension
    n_channels: int = 8  # width of the shared per-view network, a stack of 1x1 convolutions
    n_layers: int = 5  # its hidden layers
    margin: float = 1.0  # of the triplet-centre loss
    triplet_weight: float = 0.1  # of that loss beside the cross-entropy of the map prediction

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return _ViewNetwork(n_features, self.n_maps, self.map_dim, self.n_channels, self.n_layers, generator)

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        views, logits = self._module(batch)
        target = torch.arange(self.n_maps, device=batch.device).expand(len(batch), -1)
        cross_entropy = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        return cross_entropy + self.triplet_weight * triplet_centre_loss(views, self.margin)

    def _after_training(self, rows: Tensor) -> None:
        total = torch.zeros(self.n_maps, self.n_channels, device=rows.device, dtype=torch.float64)
        for part in rows.split(self.chunk_rows):
            total += self._module(part)[0].double().sum(0)
        self._centres = (total / len(rows)).float()

    def _score_batch(self, batch: Tensor) -> Tensor:
        return centre_score(self._module(batch)[0], self._centres)


class _ViewNetwork(nn.Module):
    """Random maps, then the same small network on every view, then a map classifier."""

    maps: Tensor

    def __init__(
        self, n_features: int, n_maps: int, map_dim: int, n_channels: int, n_layers: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.register_buffer("maps", torch.randn(n_maps, n_features, map_dim, generator=generator))
        self.trunk = mlp((map_dim, *[n_channels] * (n_layers + 1)), generator, nn.LeakyReLU())
        self.head = nn.Sequential(nn.LeakyReLU(0.2), linear(n_channels, n_maps, generator, bias=True))
        # As the original: with smaller weights six layers without bias shrink every view to 0 and nothing is learned.
        for layer in (*self.trunk, *self.head):
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight, gain=math.sqrt(2.0), generator=generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) -> representations (n, n_maps, n_channels) and logits (n, n_maps, n_maps)."""
        views = self.trunk(torch.einsum("nd,mdr->nmr", x, self.maps))
        return views, self.head(views)


def _square_distances(views: Tensor, centres: Tensor) -> Tensor:
    """(n, m, c), (m, c) -> squared distance of every view to every centre, (n, m, m)."""
    cross = views @ centres.T
    return (views.square().sum(-1, keepdim=True) - 2.0 * cross + centres.square().sum(-1)).clamp_min(0.0)


def triplet_centre_loss(views: Tensor, margin: float) -> Tensor:
    """Mean hinge of (own centre's distance + margin - nearest other centre's distance), centres of the batch."""
    distances = _square_distances(views, views.mean(0))
    own = torch.diagonal(distances, dim1=1, dim2=2)
    other = (distances + _FAR * torch.eye(views.shape[1], device=views.device)).amin(-1)
    return torch.clamp(own + margin - other, min=0.0).mean()


def centre_score(views: Tensor, centres: Tensor) -> Tensor:
    """Sum over views of -log softmax(-distance to the centres), taken at the view's own centre."""
    log_probability = torch.log_softmax(-_square_distances(views, centres), dim=2)
    return -torch.diagonal(log_probability, dim1=1, dim2=2).sum(1)
