"""Layers with explicit random generators: one for the initial weights, one that all layers share for dropout.

Shape
-----
x       (..., n_in)
weight  (n_in, n_out)

The layers of torch use its global generator, which is the caller's.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def uniform(generator: torch.Generator, shape: tuple[int, ...], bound: float) -> nn.Parameter:
    """Return a parameter that is uniform in [-bound, bound]."""
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def normal(generator: torch.Generator, shape: tuple[int, ...]) -> nn.Parameter:
    """Return a standard normal parameter."""
    return nn.Parameter(torch.empty(shape).normal_(generator=generator))


class Linear(nn.Module):
    """An affine map."""

    def __init__(self, generator: torch.Generator, n_in: int, n_out: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(n_in)
        self.weight = uniform(generator, (n_in, n_out), bound)
        self.bias = uniform(generator, (n_out,), bound) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.t(), self.bias)


class Noise:
    """The generator of a network in training; None otherwise."""

    def __init__(self) -> None:
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        return self.generator is not None


class Dropout(nn.Module):
    """Dropout from the shared generator; the identity if there is none."""

    def __init__(self, rate: float, noise: Noise) -> None:
        super().__init__()
        self.rate = rate
        self.noise = noise

    def forward(self, x: Tensor) -> Tensor:
        if not self.rate or not self.noise.active:
            return x
        keep = 1.0 - self.rate
        return x * torch.empty_like(x).bernoulli_(keep, generator=self.noise.generator).div_(keep)
