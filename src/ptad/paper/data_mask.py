"""The soft mask in data space (Eq. 3): how much of each cell the encoder may see.

Shape
-----
x     (n_rows, n_features)
mask  (n_rows, n_features), between 0 and 1
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ptad.paper.layers import Linear

# NOTE[PAPER-10] W1..W3 are d x d in the text; beyond this many columns the two inner widths stop growing.
MAX_HIDDEN_WIDTH = 512


class DataMask(nn.Module):
    """M^ds = sigmoid(W3 relu(W2 relu(W1 x))), without biases, as printed."""

    def __init__(self, generator: torch.Generator, n_features: int) -> None:
        super().__init__()
        hidden = min(n_features, MAX_HIDDEN_WIDTH)
        self.first = Linear(generator, n_features, hidden, bias=False)
        self.second = Linear(generator, hidden, hidden, bias=False)
        self.third = Linear(generator, hidden, n_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.third(torch.relu(self.second(torch.relu(self.first(x))))))
