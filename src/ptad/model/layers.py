"""Building blocks with a leading member axis: E networks of one shape are trained and evaluated as one batch.

Shape
-----
x       (n_members, ..., n_in)
weight  (n_members, n_in, n_out)

Every member draws its parameters from its own generator, so a member is the same network whether it is trained alone
or together with others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Generators = Sequence[torch.Generator]


def uniform(generators: Generators, shape: tuple[int, ...], bound: float) -> nn.Parameter:
    """Return a parameter of shape (n_members, *shape), uniform in [-bound, bound]."""
    draws = [torch.empty(shape).uniform_(-bound, bound, generator=generator) for generator in generators]
    return nn.Parameter(torch.stack(draws))


def normal(generators: Generators, shape: tuple[int, ...], std: float = 1.0) -> nn.Parameter:
    """Return a parameter of shape (n_members, *shape), normal with the given deviation."""
    draws = [torch.empty(shape).normal_(0.0, std, generator=generator) for generator in generators]
    return nn.Parameter(torch.stack(draws))


class Linear(nn.Module):
    """An affine map per member."""

    def __init__(self, generators: Generators, n_in: int, n_out: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(n_in)
        self.weight = uniform(generators, (n_in, n_out), bound)
        self.bias = uniform(generators, (1, n_out), bound) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        n_members, n_in, n_out = self.weight.shape
        if n_members == 1:  # one matrix product is faster than a batch of one
            bias = None if self.bias is None else self.bias[0, 0]
            return F.linear(x, self.weight[0].t(), bias)
        flat = x.reshape(n_members, -1, n_in)
        y = torch.bmm(flat, self.weight) if self.bias is None else torch.baddbmm(self.bias, flat, self.weight)
        return y.reshape(*x.shape[:-1], n_out)


class LayerNorm(nn.Module):
    """Layer normalisation over the last axis, with an own gain and shift per member."""

    def __init__(self, n_members: int, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_members, width))
        self.bias = nn.Parameter(torch.zeros(n_members, width))

    def forward(self, x: Tensor) -> Tensor:
        n_members, width = self.weight.shape
        if n_members == 1:
            return F.layer_norm(x, (width,), self.weight[0], self.bias[0], self.eps)
        shape = (n_members, *[1] * (x.dim() - 2), width)
        return F.layer_norm(x, (width,), eps=self.eps) * self.weight.view(shape) + self.bias.view(shape)


class Noise:
    """The one source of randomness of a network in training; none outside of it.

    Modules share this handle instead of torch's global generator, which belongs to the caller.
    """

    def __init__(self) -> None:
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        return self.generator is not None


class Dropout(nn.Module):
    """Dropout from the shared noise source; the identity when that is silent."""

    def __init__(self, rate: float, noise: Noise) -> None:
        super().__init__()
        self.rate = rate
        self.noise = noise

    def forward(self, x: Tensor) -> Tensor:
        if not self.rate or not self.noise.active:
            return x
        keep = 1.0 - self.rate
        return x * torch.empty_like(x).bernoulli_(keep, generator=self.noise.generator).div_(keep)
