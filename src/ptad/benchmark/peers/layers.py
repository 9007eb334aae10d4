"""Small building blocks of the deep peers, all drawn from a local generator.

``torch.nn.Linear`` fills itself from the global generator when it is made; these helpers skip that and draw the same
distribution from the generator at hand, so that a fit neither reads nor moves any global state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import nn

from ptad.paper.layers import uniform


def linear(n_in: int, n_out: int, generator: torch.Generator, bias: bool = False) -> nn.Linear:
    """A linear layer with PyTorch's usual uniform(-1/sqrt(n_in), 1/sqrt(n_in)) start."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    bound = 1.0 / math.sqrt(max(n_in, 1))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if bias:
            layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def stacked_weight(n_stack: int, n_in: int, n_out: int, generator: torch.Generator) -> nn.Parameter:
    """Weights of ``n_stack`` independent linear layers without bias, shape (n_stack, n_in, n_out)."""
    return uniform(generator, (n_stack, n_in, n_out), 1.0 / math.sqrt(max(n_in, 1)))


def mlp(widths: Sequence[int], generator: torch.Generator, activation: nn.Module, bias: bool = False) -> nn.Sequential:
    """Linear layers of the given widths with ``activation`` between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [linear(n_in, n_out, generator, bias), activation]
    return nn.Sequential(*layers[:-1])
