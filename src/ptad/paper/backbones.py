"""Encoders and decoders: NPT (the paper's), a transformer without attention between rows, an MLP.

Shape
-----
x, missing      (n_rows, n_features)
latent          (n_rows, latent_dim)
masked_latents  (n_branches, n_rows, latent_dim)
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptad.paper.attention import KeysValues
from ptad.paper.embedding import FeatureEmbedding, FeatureReadout
from ptad.paper.layers import Linear, Noise
from ptad.paper.npt import NPTLayer
from ptad.paper.settings import NetworkSettings

MLP_WIDTHS = (256, 256, 128)  # the encoder of MCM, on which the paper's MLP backbone rests


class AttentionBackbone(nn.Module):
    """Feature embedding, one NPT layer as encoder, one as decoder, feature readout."""

    def __init__(self, generator: torch.Generator, n_features: int, settings: NetworkSettings, noise: Noise) -> None:
        super().__init__()
        datapoints = settings.backbone == "npt"
        self.cell_shape = (n_features, settings.embedding_dim)
        self.latent_dim = n_features * settings.embedding_dim
        self.embedding = FeatureEmbedding(generator, n_features, settings.embedding_dim, settings.dropout, noise)
        self.encoder = NPTLayer(generator, n_features, settings, noise, datapoints=datapoints)
        self.decoder = NPTLayer(generator, n_features, settings, noise, datapoints=datapoints)
        self.readout = FeatureReadout(generator, n_features, settings.embedding_dim)

    def encode(self, x: Tensor, missing: Tensor, reference: KeysValues | None) -> tuple[Tensor, KeysValues | None]:
        """Return the latents, and the keys and values of the rows."""
        cells = self.embedding(x, missing).unsqueeze(0)
        cells, keys_values, _ = self.encoder(cells, reference)
        return cells.squeeze(0).flatten(-2), keys_values

    def decode(
        self, masked_latents: Tensor, reference: KeysValues | None
    ) -> tuple[Tensor, KeysValues | None, Tensor | None]:
        """Return the reconstructions of all branches, computed as one batch, and the association vectors."""
        cells, keys_values, association = self.decoder(masked_latents.unflatten(-1, self.cell_shape), reference)
        return self.readout(cells), keys_values, association.mean(dim=0)


class MLPBackbone(nn.Module):
    """MCM's encoder and decoder; no attention, hence no association vectors and no reference rows."""

    def __init__(self, generator: torch.Generator, n_features: int) -> None:
        super().__init__()
        widths = (2 * n_features, *MLP_WIDTHS)
        self.latent_dim = MLP_WIDTHS[-1]
        self.down = nn.ModuleList(Linear(generator, a, b) for a, b in pairwise(widths))
        back = (*reversed(MLP_WIDTHS), n_features)
        self.up = nn.ModuleList(Linear(generator, a, b) for a, b in pairwise(back))

    def encode(self, x: Tensor, missing: Tensor, reference: KeysValues | None) -> tuple[Tensor, KeysValues | None]:
        """Return the latents; there are no keys and values."""
        return _apply(self.down, torch.cat([x, missing], dim=-1)), None

    def decode(
        self, masked_latents: Tensor, reference: KeysValues | None
    ) -> tuple[Tensor, KeysValues | None, Tensor | None]:
        """Return the reconstructions of all branches."""
        return _apply(self.up, masked_latents), None, None


def _apply(layers: nn.ModuleList, x: Tensor) -> Tensor:
    for layer in layers[:-1]:
        x = F.leaky_relu(layer(x), 0.2)
    last: Tensor = layers[-1](x)
    return last
