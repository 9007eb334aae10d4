"""Operations of the terms that ONNX runtimes lack in double precision, written in operations that they have.

They take the place of torch's own while a graph is traced, so the scoring code is the same inside and outside of ONNX.
Double precision is not a luxury: a P-space mask on the edge of its threshold flips by the error of single precision,
and moves the score visibly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

GELU_DEGREE = 10  # leaves an error of 1e-13
GELU_SLOPE = 0.26  # of t = 1 / (1 + slope * |x|), in which the tail is nearly a polynomial
GELU_REACH = 9.0  # beyond it the tail is smaller than the rounding of 1


@cache
def tail_coefficients() -> tuple[float, ...]:
    """Coefficients c of P(-|x|) * exp(x^2 / 2) = c0 + c1 t + ..., P the normal distribution, t as above."""
    first = 1.0 / (1.0 + GELU_SLOPE * GELU_REACH)
    angle = np.pi * (np.arange(2000) + 0.5) / 2000
    t = first + (1.0 - first) * 0.5 * (1.0 + np.cos(angle))
    a = (1.0 / t - 1.0) / GELU_SLOPE
    tail = [0.5 * math.exp(v * v / 2) * math.erfc(v / math.sqrt(2)) for v in a]
    # Where exp(-x^2 / 2) is small, so is the harm of an error; nodes are dense at both ends, which levels the error.
    weight = np.exp(-a * a / 2) * (a + 0.1) / np.sqrt(np.sin(angle))
    fitted = np.polynomial.Chebyshev.fit(t, tail, GELU_DEGREE, w=weight)
    return tuple(float(c) for c in fitted.convert(kind=np.polynomial.Polynomial).coef)


def gelu(x: Tensor) -> Tensor:
    """Return x P(x) as max(x, 0) - |x| P(-|x|): no error function, no difference of large numbers."""
    size = x.abs()
    t = (size * GELU_SLOPE + 1.0).reciprocal()
    *rest, last = tail_coefficients()
    tail = t * last + rest[-1]
    for coefficient in reversed(rest[:-1]):
        tail = tail * t + coefficient
    return x.relu() - size * tail * (size * size * -0.5).exp()


def solve(system: Tensor) -> Tensor:
    """Solve positive definite or triangular systems by halving them: a few products of small matrices.

    Shape
    -----
    system   (..., k, k + m), the matrix and beside it the right-hand sides
    result   (..., k, m)
    """
    k = system.shape[-2]
    if k == 1:
        return system[..., 1:] / system[..., :1]
    half = k // 2
    first = solve(system[..., :half, :])  # the first half of the unknowns, in terms of the second
    second = solve(system[..., half:, half:] - system[..., half:, :half] @ first)
    rest = k - half
    return torch.cat([first[..., rest:] - first[..., :rest] @ second, second], dim=-2)


def cholesky(matrix: Tensor) -> Tensor:
    """Return the lower factor of positive definite matrices (..., k, k), by halving them."""
    return _factor(matrix)[0]


def _factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower factor and its inverse."""
    k = matrix.shape[-1]
    if k == 1:
        root = matrix.sqrt()
        return root, root.reciprocal()
    half = k // 2
    first, first_inverse = _factor(matrix[..., :half, :half])
    below = matrix[..., half:, :half] @ first_inverse.mT
    second, second_inverse = _factor(matrix[..., half:, half:] - below @ below.mT)
    beside = torch.zeros_like(below.mT)
    inverse_below = -(second_inverse @ below @ first_inverse)
    return _blocks(first, beside, below, second), _blocks(first_inverse, beside, inverse_below, second_inverse)


def _blocks(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.cat([torch.cat([a, b], dim=-1), torch.cat([c, d], dim=-1)], dim=-2)


def search_sorted(knots: Tensor, values: Tensor, right: bool = False) -> Tensor:
    """Return how many knots of each row lie below each value (``right``: do not lie above), by halving.

    Shape
    -----
    knots (d, m) ascending, values (d, n) -> (d, n)
    """
    count = torch.zeros_like(values, dtype=torch.int64)
    m = knots.shape[-1]
    for power in reversed(range(m.bit_length())):
        more = count + 2**power
        knot = knots.gather(-1, (more - 1).clamp_max(m - 1))
        fits = (knot <= values if right else knot < values) & (more <= m)
        count = torch.where(fits, more, count)
    return count


class _Factored(NamedTuple):
    """What ``torch.linalg.cholesky_ex`` returns."""

    L: Tensor
    info: Tensor


class _Solved(NamedTuple):
    """What ``torch.linalg.solve_ex`` returns."""

    result: Tensor
    info: Tensor


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    return solve(torch.cat([matrix, right.expand(*matrix.shape[:-1], right.shape[-1])], dim=-1))


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x, or its small multiple where it is negative."""
    return x.relu() - (-x).relu() * negative_slope


_REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    F.gelu: gelu,
    F.leaky_relu: leaky_relu,
    torch.linalg.cholesky: cholesky,
    torch.linalg.cholesky_ex: lambda matrix: _Factored(cholesky(matrix), torch.zeros((), dtype=torch.int32)),
    torch.linalg.inv: lambda matrix: _solve(matrix, torch.eye(matrix.shape[-1], dtype=matrix.dtype)),
    torch.linalg.solve: _solve,
    torch.linalg.solve_ex: lambda matrix, right: _Solved(_solve(matrix, right), torch.zeros((), dtype=torch.int32)),
    torch.linalg.solve_triangular: lambda matrix, right, *, upper: _solve(matrix, right),
    torch.searchsorted: search_sorted,
}


# The exporter writes Python's numbers in single precision; tensors keep theirs.
_ARITHMETIC = {
    f"{form}{name}{'__' if form else ''}"
    for name in ("add", "sub", "mul", "div", "truediv")
    for form in ("", "__", "__r")
} | {"rsub", "where"}


class PlainOperations(TorchFunctionMode):
    """Within it, torch's functions are those above, and every number is in double precision."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in _ARITHMETIC:
            args = tuple(torch.tensor(a, dtype=torch.float64) if isinstance(a, float) else a for a in args)
        if func in _REPLACEMENTS:
            with self:
                return _REPLACEMENTS[func](*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))
