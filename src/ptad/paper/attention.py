"""The attention block of NPT, used both between datapoints (ABD) and between attributes (ABA).

Shape
-----
x          (n_sets, n_items, width)     items attend within their set
q, k, v    (n_sets, n_heads, n_items, width / n_heads)

For ABD a set is a branch and its items are rows; for ABA a set is a row and its items are columns.

NOTE[PAPER-08] As NPT's authors built it: Q from the normalised input but K and V from the raw one, logits divided by
the root of the FULL width, and a trained linear residual instead of the identity.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptad.paper.layers import Dropout, Linear, Noise
from ptad.paper.settings import NetworkSettings

# NOTE[PAPER-10] Beyond this many logits (1 GiB) the weights are never formed, and their dropout is left out.
MAX_LOGITS = 2**28


class KeysValues(NamedTuple):
    """Keys and values of a reference set, to which other rows attend."""

    keys: Tensor
    values: Tensor


class AttentionBlock(nn.Module):
    """Multi-head attention and a row-wise feed-forward network: 13 w^2 + 14 w parameters."""

    def __init__(self, generator: torch.Generator, width: int, settings: NetworkSettings, noise: Noise) -> None:
        super().__init__()
        self.n_heads = settings.n_heads
        self.scale = 1.0 / math.sqrt(width)
        self.norm_attention = nn.LayerNorm(width, eps=1e-12)
        self.query = Linear(generator, width, width)
        self.key = Linear(generator, width, width)
        self.value = Linear(generator, width, width)
        self.output = Linear(generator, width, width)
        self.residual = Linear(generator, width, width)
        self.norm_feedforward = nn.LayerNorm(width, eps=1e-12)
        self.widen = Linear(generator, width, settings.feedforward_factor * width)
        self.narrow = Linear(generator, settings.feedforward_factor * width, width)
        self.dropout = Dropout(settings.dropout, noise)

    def forward(self, x: Tensor, reference: KeysValues | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the new x, and the queries, keys and values that it was computed from.

        With a reference, every item attends to the reference set and to itself, never to the items beside it.
        """
        q, k, v = self._split(self.query(self.norm_attention(x))), self._split(self.key(x)), self._split(self.value(x))
        attended = self._attend(q, k, v) if reference is None else self._attend_reference(q, k, v, reference)
        merged = attended.transpose(-3, -2).reshape(x.shape)
        x = self.residual(x) + self.dropout(self.output(merged))
        hidden = self.dropout(F.gelu(self.widen(self.norm_feedforward(x))))
        return x + self.dropout(self.narrow(hidden)), q, k, v

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n_logits = q[..., 0].numel() * k.shape[-2]
        if self.dropout.rate and self.dropout.noise.active and n_logits <= MAX_LOGITS:
            # the fused kernel of torch would draw its dropout from the global generator
            weights = torch.softmax((q * self.scale) @ k.transpose(-1, -2), dim=-1)
            return self.dropout(weights) @ v
        return F.scaled_dot_product_attention(q, k, v, scale=self.scale)

    def _attend_reference(self, q: Tensor, k: Tensor, v: Tensor, reference: KeysValues) -> Tensor:
        to_reference = (q @ reference.keys.transpose(-1, -2)) * self.scale
        to_self = (q * k).sum(dim=-1, keepdim=True) * self.scale
        weights = torch.softmax(torch.cat([to_reference, to_self], dim=-1), dim=-1)
        return weights[..., :-1] @ reference.values + weights[..., -1:] * v
