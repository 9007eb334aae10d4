"""Encoders and decoders: NPT (the paper's), a transformer without attention between rows, an MLP; see also ``dense``.

Shape
-----
x, missing      (n_members, n_rows, n_features)
latent          (n_members, n_rows, latent_dim)
masked_latents  (n_members, n_branches, n_rows, latent_dim)
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptad.config import Config
from ptad.model.attention import KeysValues
from ptad.model.dense import DenseBackbone
from ptad.model.embedding import FeatureEmbedding, FeatureReadout
from ptad.model.layers import Generators, Linear, Noise
from ptad.model.npt import NPTLayer

MLP_WIDTHS = (256, 256, 128)  # the encoder of MCM, on which the paper's MLP backbone rests


class AttentionBackbone(nn.Module):
    """Feature embedding, one NPT layer as encoder, one as decoder, feature readout."""

    def __init__(self, generators: Generators, n_features: int, config: Config, noise: Noise) -> None:
        super().__init__()
        datapoints = config.backbone == "npt"
        self.cell_shape = (n_features, config.embedding_dim)
        self.latent_dim = n_features * config.embedding_dim
        self.embedding = FeatureEmbedding(generators, n_features, config.embedding_dim, config.dropout, noise)
        self.encoder = NPTLayer(generators, n_features, config, noise, datapoints=datapoints)
        self.decoder = NPTLayer(generators, n_features, config, noise, datapoints=datapoints)
        self.readout = FeatureReadout(generators, n_features, config.embedding_dim)

    def encode(self, x: Tensor, missing: Tensor, reference: KeysValues | None) -> tuple[Tensor, KeysValues | None]:
        cells = self.embedding(x, missing).unsqueeze(1)
        cells, keys_values, _ = self.encoder(cells, reference)
        return cells.squeeze(1).flatten(-2), keys_values

    def decode(
        self, masked_latents: Tensor, reference: KeysValues | None
    ) -> tuple[Tensor, KeysValues | None, Tensor | None]:
        """Return the reconstructions of all branches, computed as one batch, and the association vectors."""
        cells, keys_values, association = self.decoder(masked_latents.unflatten(-1, self.cell_shape), reference)
        return self.readout(cells), keys_values, association.mean(dim=1)


class MLPBackbone(nn.Module):
    """MCM's encoder and decoder; no attention, hence no association vectors and no reference rows."""

    def __init__(self, generators: Generators, n_features: int, config: Config, noise: Noise) -> None:
        super().__init__()
        widths = (2 * n_features, *MLP_WIDTHS)
        self.latent_dim = MLP_WIDTHS[-1]
        self.down = nn.ModuleList(Linear(generators, a, b) for a, b in pairwise(widths))
        back = (*reversed(MLP_WIDTHS), n_features)
        self.up = nn.ModuleList(Linear(generators, a, b) for a, b in pairwise(back))

    def encode(self, x: Tensor, missing: Tensor, reference: KeysValues | None) -> tuple[Tensor, KeysValues | None]:
        return _apply(self.down, torch.cat([x, missing], dim=-1)), None

    def decode(
        self, masked_latents: Tensor, reference: KeysValues | None
    ) -> tuple[Tensor, KeysValues | None, Tensor | None]:
        return _apply(self.up, masked_latents), None, None


def _apply(layers: nn.ModuleList, x: Tensor) -> Tensor:
    for layer in layers[:-1]:
        x = F.leaky_relu(layer(x), 0.2)
    last: Tensor = layers[-1](x)
    return last


Backbone = AttentionBackbone | MLPBackbone | DenseBackbone

_KINDS: dict[str, type[Backbone]] = {
    "npt": AttentionBackbone,
    "transformer": AttentionBackbone,
    "mlp": MLPBackbone,
    "dense": DenseBackbone,
}


def make_backbone(generators: Generators, n_features: int, config: Config, noise: Noise) -> Backbone:
    """Return the backbone that the configuration names."""
    return _KINDS[config.backbone](generators, n_features, config, noise)
