"""Small building blocks of the deep peers, all drawn from a local generator.

``torch.nn.Linear`` fills itself from the global generator when it is made; these helpers skip that and draw the same
distribution from the generator at hand, so that a fit neither reads nor moves any global state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


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
    bound = 1.0 / math.sqrt(max(n_in, 1))
    return nn.Parameter(torch.empty(n_stack, n_in, n_out).uniform_(-bound, bound, generator=generator))


def mlp(
    widths: Sequence[int],
    generator: torch.Generator,
    activation: nn.Module,
    bias: bool = False,
    dropout: LocalDropout | None = None,
) -> nn.Sequential:
    """Linear layers of the given widths with ``activation`` (and ``dropout``) between them, none after the last."""
    layers: list[nn.Module] = []
    for position, (n_in, n_out) in enumerate(itertools.pairwise(widths)):
        if position > 0:
            layers.append(activation)
            if dropout is not None:
                layers.append(dropout)
        layers.append(linear(n_in, n_out, generator, bias))
    return nn.Sequential(*layers)


class LocalDropout(nn.Module):
    """Dropout that draws from its own generator, set by the training loop; silent outside training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Zero a share ``rate`` of the values and scale up the others."""
        if not self.training or self.rate == 0.0 or self.generator is None:
            return x
        keep = torch.rand(x.shape, generator=self.generator, device=x.device, dtype=x.dtype) >= self.rate
        return x * keep / (1.0 - self.rate)


def count_parameters(module: nn.Module) -> int:
    """Trained numbers of a module."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
