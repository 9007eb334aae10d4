"""The few operations that numpy and torch spell differently, so that the same code serves arrays and tensors.

On a GPU no function waits for a result or sends a small constant twice, and every function can be traced into a graph:
none depends on the number of rows.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # a numpy array or a torch tensor: the same code serves both
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

CONSTANT_BYTES = 2**16  # constants up to this size are kept on the device


def is_tensor(x: Any) -> bool:
    """Return whether ``x`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: Array) -> Any:
    """Return the module whose functions take ``x``: numpy or torch."""
    return sys.modules["torch"] if is_tensor(x) else np


def on_device(x: Any, device: str) -> Array:
    """Return a numpy array as it is for "cpu", otherwise as a tensor on the device."""
    if device == "cpu":
        return x
    import torch

    values = torch.as_tensor(np.ascontiguousarray(x))
    if device.startswith("cuda"):  # a copy from pinned memory does not block
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


def to_numpy(x: Array) -> Any:
    """Return an array or a tensor as a numpy array."""
    return x.cpu().numpy() if is_tensor(x) else np.asarray(x)


def like(x: Any, other: Array) -> Array:
    """Return a numpy array as the kind of array that ``other`` is, on its device; it must not be written to."""
    if not is_tensor(other):
        return x
    torch = namespace(other)
    x = np.ascontiguousarray(x)
    # A copy to a GPU waits for it, so small constants are kept; those of a trace belong to its graph.
    if x.nbytes > CONSTANT_BYTES or torch.compiler.is_compiling():
        return torch.as_tensor(x, device=other.device)
    return _constant(x.tobytes(), x.dtype.str, x.shape, other.device)


@lru_cache(maxsize=1024)
def _constant(content: bytes, dtype: str, shape: tuple[int, ...], device: Any) -> Array:
    values = np.frombuffer(content, dtype=dtype).reshape(shape).copy()
    return sys.modules["torch"].as_tensor(values, device=device)


def integers(x: Array) -> Array:
    """Return whole numbers as 64-bit integers."""
    return x.long() if is_tensor(x) else x.astype(np.int64)


def floats(x: Array) -> Array:
    """Return numbers or booleans in double precision; torch would use single precision with a Python number."""
    return x.double() if is_tensor(x) else x.astype(np.float64)


def rounded(x: Array) -> Array:
    """Return double-precision numbers rounded to single precision, independent of the order of additions."""
    return x.float().double() if is_tensor(x) else x.astype(np.float32).astype(np.float64)


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x))."""
    return x.clamp_min(0.0) + (-x.abs()).exp().log1p() if is_tensor(x) else np.logaddexp(0.0, x)


def take_columns(x: Array, places: Any) -> Array:
    """Return some columns of a matrix; the matrix itself if all are selected."""
    if len(places) == x.shape[1] and (places == np.arange(len(places))).all():
        return x
    return x.index_select(1, like(places, x)) if is_tensor(x) else x[:, places]


def largest(x: Array) -> Array:
    """Return the largest value along the second axis."""
    return x.amax(dim=1) if is_tensor(x) else x.max(axis=1)


def smallest_places(x: Array, k: int) -> Array:
    """Return the places of the k smallest values of every row, in no order."""
    if is_tensor(x):
        return x.topk(k, dim=1, largest=False, sorted=False).indices
    if k >= x.shape[1]:
        return np.broadcast_to(np.arange(x.shape[1]), x.shape)
    return np.argpartition(x, k - 1, axis=1)[:, :k]


def gather(x: Array, places: Array) -> Array:
    """Return ``x[i, places[i, j]]`` of a matrix."""
    if is_tensor(x):
        return x.gather(-1, places)
    return x.ravel().take(_flat(places, x.shape[1]))  # take_along_axis takes three times as long


def pick(x: Array, places: Array) -> Array:
    """Return ``x[i, places[i, j]]`` for the second of three axes.

    Shape
    -----
    x (n, m, c), places (n, k) -> (n, k, c)
    """
    if is_tensor(x):
        return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))
    # whole rows are copied; take_along_axis would copy number by number and take ten times as long
    return x.reshape(-1, x.shape[2]).take(_flat(places, x.shape[1]), axis=0)


def _flat(places: Indices, width: int) -> Indices:
    """Return the places in the flat array, for places along the second axis."""
    return places + width * np.arange(len(places))[:, None]


def cholesky(x: Array) -> Array:
    """Return the lower Cholesky factors of positive definite matrices; torch does not check that they are."""
    return namespace(x).linalg.cholesky_ex(x).L if is_tensor(x) else np.linalg.cholesky(x)


def inverse(x: Array) -> Array:
    """Return the inverses of lower triangular matrices."""
    if is_tensor(x):
        torch = namespace(x)
        return torch.linalg.solve_triangular(x, like(np.eye(x.shape[-1]), x).expand(x.shape), upper=False)
    return np.linalg.inv(x)


def count_below(knots: Array, values: Array) -> tuple[Array, Array]:
    """Return for every value how many knots of its column lie below it, and how many do not lie above.

    Shape
    -----
    knots (d, m) ascending, values (n, d) -> two of (n, d)
    """
    if is_tensor(values):
        torch = namespace(values)
        turned = values.T.contiguous()
        return torch.searchsorted(knots, turned).T, torch.searchsorted(knots, turned, right=True).T
    below, up_to = np.empty(values.shape, dtype=np.int64), np.empty(values.shape, dtype=np.int64)
    for j, column in enumerate(knots):
        x = values[:, j]
        below[:, j] = up_to[:, j] = places = column.searchsorted(x, side="left")
        # Only for a value that equals a knot do the two counts differ; most numbers equal none and are searched once.
        equal = column.take(places, mode="clip") == x
        if equal.any():
            up_to[equal, j] = column.searchsorted(x[equal], side="right")
    return below, up_to


def column_range(values: Matrix) -> tuple[Matrix, Matrix]:
    """Return the smallest and the largest value of every column, NaN aside; inf and -inf where all are NaN."""
    return np.fmin.reduce(values, axis=0, initial=np.inf), np.fmax.reduce(values, axis=0, initial=-np.inf)


class GroupSum:
    """Adds up the columns of a matrix by group; ``groups`` (n_cells,) is the group of every column."""

    def __init__(self, groups: Any, n_groups: int, device: str) -> None:
        self._member: Any = None
        if len(groups) == n_groups and (groups == np.arange(n_groups)).all():
            return  # every column is its own group
        if device == "cpu":
            from scipy.sparse import csr_array

            places = np.arange(len(groups))
            self._member = csr_array((np.ones(len(groups)), (places, groups)), shape=(len(groups), n_groups))
        else:
            self._member = on_device((groups[:, None] == np.arange(n_groups)).astype(np.float64), device)

    def __call__(self, cells: Array) -> Array:
        """Return (n, n_groups)."""
        return cells if self._member is None else cells @ self._member
