"""The dense backbone: whole rows through a few wide layers, with an association read-out.

Shape
-----
x, missing      (n_members, n_rows, n_features)
latent          (n_members, n_rows, latent_dim)
masked_latents  (n_members, n_branches, n_rows, latent_dim)
association     (n_members, n_rows, n_features)

Attention between attributes spends d^2 small products per row. Here every attribute has a query and a key of one
number, read from the row's state; their product is the diagonal of that attention, which is all that the association
vector of section IV-B keeps of it. The product takes part in the reconstruction, so that it is learned.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptad.config import Config
from ptad.model.attention import KeysValues
from ptad.model.layers import Generators, Linear, Noise

# A step of Adam moves every weight by the learning rate, so that a state moves with the number of inputs. Beyond this
# many they share the rate: the weights are kept larger and the inputs smaller by the same factor.
FULL_RATE_INPUTS = 1024


class DenseBackbone(nn.Module):
    """Two layers up to the P-space, one beyond it, each column read out from the row's state."""

    def __init__(self, generators: Generators, n_features: int, config: Config, noise: Noise) -> None:
        super().__init__()
        width = config.dense_width
        self.latent_dim = width
        self.input_scale = min(1.0, FULL_RATE_INPUTS / (2 * n_features))
        self.enter = Linear(generators, 2 * n_features, width)
        self.enter.weight.data.div_(self.input_scale)
        self.encoder = Linear(generators, width, width)
        self.decoder = Linear(generators, width, width)
        self.value = Linear(generators, width, n_features)
        self.query = Linear(generators, width, n_features)
        self.key = Linear(generators, width, n_features)

    def encode(self, x: Tensor, missing: Tensor, reference: KeysValues | None) -> tuple[Tensor, KeysValues | None]:
        inputs = torch.cat([x, missing], dim=-1)
        state = F.gelu(self.enter(inputs if self.input_scale == 1.0 else inputs * self.input_scale))
        return state + F.gelu(self.encoder(state)), None

    def decode(
        self, masked_latents: Tensor, reference: KeysValues | None
    ) -> tuple[Tensor, KeysValues | None, Tensor | None]:
        """Return the reconstructions of all branches and the association vectors."""
        state = masked_latents + F.gelu(self.decoder(masked_latents))
        association = self.query(state) * self.key(state)
        return self.value(state) + association, None, association.mean(dim=1)
