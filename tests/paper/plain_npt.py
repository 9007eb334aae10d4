"""An NPT block written a second time, from the description of its authors' code: plain numpy, loops, no batching.

It shares nothing with the library but the trained numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def numbers(module: Any) -> dict[str, Array]:
    """Return the trained numbers by name."""
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def layer_norm(x: Array, gain: Array, shift: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12) * gain + shift


def gelu(x: Array) -> Array:
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def linear(x: Array, p: dict[str, Array], name: str) -> Array:
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def attend(x: Array, context: Array, p: dict[str, Array], n_heads: int, own: bool = False) -> Array:
    """Return the block's output for the items of x, which look at the items of ``context`` (and at themselves)."""
    n_items, width = x.shape
    head = width // n_heads
    q = linear(layer_norm(x, p["norm_attention.weight"], p["norm_attention.bias"]), p, "query")
    k, v = linear(context, p, "key"), linear(context, p, "value")  # from the un-normalised input
    own_k, own_v = linear(x, p, "key"), linear(x, p, "value")
    merged = np.zeros_like(x)
    for item in range(n_items):
        for h in range(n_heads):
            part = slice(h * head, (h + 1) * head)
            keys = [row[part] for row in k] + ([own_k[item, part]] if own else [])
            values = [row[part] for row in v] + ([own_v[item, part]] if own else [])
            logits = np.array([q[item, part] @ key for key in keys]) / math.sqrt(width)  # the FULL width
            weights = np.exp(logits - logits.max())
            weights /= weights.sum()
            merged[item, part] = sum(w * value for w, value in zip(weights, values, strict=True))
    hidden = linear(x, p, "residual") + linear(merged, p, "output")  # a trained residual
    normed = layer_norm(hidden, p["norm_feedforward.weight"], p["norm_feedforward.bias"])
    return hidden + linear(gelu(linear(normed, p, "widen")), p, "narrow")


def npt_layer(cells: Array, layer: Any, n_heads: int) -> Array:
    """ABD on (N, d e), then ABA on each row's (d, e); full width."""
    n_rows = len(cells)
    rows = cells.reshape(n_rows, -1)
    p = numbers(layer.between_datapoints.block)
    rows = attend(rows, rows, p, n_heads)
    p = numbers(layer.between_attributes.block)
    return np.stack([attend(row, row, p, n_heads) for row in rows.reshape(cells.shape)])


def associations(cells: Array, block: Any, n_heads: int) -> Array:
    """pi_ni = mean over heads of sum_j q_ij k_ij / sqrt(h_k), for one branch's cells entering the ABA."""
    p = numbers(block)
    n_rows, n_features, width = cells.shape
    head = width // n_heads
    out = np.zeros((n_rows, n_features))
    for n in range(n_rows):
        q = linear(layer_norm(cells[n], p["norm_attention.weight"], p["norm_attention.bias"]), p, "query")
        k = linear(cells[n], p, "key")
        for i in range(n_features):
            per_head = [
                q[i, h * head : (h + 1) * head] @ k[i, h * head : (h + 1) * head] / math.sqrt(head)
                for h in range(n_heads)
            ]
            out[n, i] = np.mean(per_head)
    return out
