"""The few operations that numpy and torch spell differently, so that one code serves arrays and tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: Array) -> Any:
    """Return the module whose functions take ``x``: numpy or torch."""
    return sys.modules["torch"] if is_tensor(x) else np


def on_device(x: Any, device: str) -> Array:
    """Return ``x`` where the work is done: as a numpy array for "cpu", as a tensor elsewhere."""
    if device == "cpu":
        return x
    import torch

    return torch.as_tensor(np.ascontiguousarray(x), device=device)


def to_numpy(x: Array) -> Any:
    """Return an array or a tensor as a numpy array."""
    return x.cpu().numpy() if is_tensor(x) else np.asarray(x)


def like(x: Any, other: Array) -> Array:
    """Return a numpy array as the kind of array that ``other`` is, in the same place."""
    return namespace(other).as_tensor(x, device=other.device) if is_tensor(other) else x


def integers(x: Array) -> Array:
    """Return whole numbers as 64-bit integers."""
    return x.long() if is_tensor(x) else x.astype(np.int64)


def largest(x: Array) -> Array:
    """Return the largest value along the second axis."""
    return x.amax(dim=1) if is_tensor(x) else x.max(axis=1)


def smallest(x: Array, k: int) -> Array:
    """Return the places of the k smallest values of every row, in no order."""
    if is_tensor(x):
        return x.topk(k, dim=1, largest=False, sorted=False).indices
    if k >= x.shape[1]:
        return np.broadcast_to(np.arange(x.shape[1]), x.shape)
    return np.argpartition(x, k - 1, axis=1)[:, :k]


def gather(x: Array, places: Array) -> Array:
    """Return ``x[i, places[i, j]]`` for the last axis."""
    return x.gather(-1, places) if is_tensor(x) else np.take_along_axis(x, places, axis=-1)


def count_below(knots: Array, values: Array) -> tuple[Array, Array]:
    """Return for every value how many knots of its column lie below it, and how many do not lie above.

    Shape
    -----
    knots (d, m) ascending, values (n, d) -> two of (n, d)
    """
    if is_tensor(values):
        torch = namespace(values)
        columns = values.T.contiguous()
        return torch.searchsorted(knots, columns).T, torch.searchsorted(knots, columns, right=True).T
    below, up_to = np.empty(values.shape, dtype=np.int64), np.empty(values.shape, dtype=np.int64)
    for j, known in enumerate(knots):
        below[:, j] = known.searchsorted(values[:, j], side="left")
        up_to[:, j] = known.searchsorted(values[:, j], side="right")
    return below, up_to
