"""Operations of the terms that ONNX runtimes lack in double precision, written in operations that they have.

They take the place of torch's own while a graph is traced, so the scoring code is the same inside and outside of ONNX.
Double precision is needed: the error of single precision flips a P-space mask at its threshold, which moves the score
visibly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

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


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x, or its small multiple where it is negative."""
    return x.relu() - (-x).relu() * negative_slope


_REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    F.gelu: gelu,
    F.leaky_relu: leaky_relu,
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
