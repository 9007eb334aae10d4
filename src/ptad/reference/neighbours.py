"""Exact search for the nearest reference rows.

Distances from a matrix product only choose the neighbours; scores are computed from the differences to them. Ties
between reference rows at the same distance are broken by their place: a tiny amount, far above rounding and far below
any real difference, is added to the squared distance of each row according to its place, so the neighbours are the same
in any batch, order and thread count.

On a CPU the product is taken in single precision, which is twice as fast, and gives a few candidates more than
neighbours; where the exact distances of the candidates cannot prove that no other row is nearer, the row is searched
again in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptad.arrays import Array, floats, gather, is_tensor, like, namespace, pick, smallest_places, to_numpy

TIE_STEP = 1e-11  # added to the squared distance per place among the reference rows
BLOCK = 16  # reference rows whose smallest distance decides whether they are compared one by one
SPARE = 6  # candidates more than neighbours in single precision
ROUNDING = 2.0**-18  # bound on the relative error of a squared distance in single precision


class Neighbours:
    """The reference points (n_reference, n_coordinates), ready to be searched for the k nearest ones, or for all."""

    def __init__(self, points: Array, k: int) -> None:
        n = len(points)
        self.k = min(k, n)
        self.points = points
        values = to_numpy(points)
        # Centring keeps the expanded square |a|^2 - 2ab + |b|^2 from losing digits.
        centre = values.mean(axis=0)
        centred = values - centre
        padding = -n % BLOCK
        norms = (centred**2).sum(axis=1)
        offsets = np.concatenate([norms + TIE_STEP * np.arange(n), np.full(padding, np.inf)])
        product = np.zeros((centred.shape[1], n + padding))
        np.multiply(centred.T, -2.0, out=product[:, :n])
        self._largest = float(norms.max(initial=0.0))
        self._centre, self._offsets = like(centre, points), like(offsets, points)
        self._product = like(product, points)
        self._single = None
        if not is_tensor(points):
            self._single = self._product.astype(np.float32), offsets.astype(np.float32)

    def __call__(self, queries: Array) -> tuple[Array, Array]:
        """Return the places of the k nearest points of every query, nearest first, and the differences to them.

        Shape
        -----
        queries (n, c) -> (n, k), (n, k, c)
        """
        if self._single is None or self.k + SPARE >= len(self.points):
            return self._exact(queries)
        centred = queries - self._centre
        product, offsets = self._single
        rough = centred.astype(np.float32) @ product
        rough += offsets
        near = nearest_places(rough, self.k + SPARE)
        differences, squared = self._measure(queries, near)
        order = np.argsort(squared, axis=1)[:, : self.k]
        norms = np.einsum("nc,nc->n", centred, centred)
        limit = np.take_along_axis(rough, near, axis=1).max(axis=1) + norms
        limit -= ROUNDING * (norms + self._largest)
        unproven = np.take_along_axis(squared, order[:, -1:], axis=1)[:, 0] >= limit
        near = np.take_along_axis(near, order, axis=1)
        differences = pick(differences, order)
        if unproven.any():
            near[unproven], differences[unproven] = self._exact(queries[unproven])
        return near, differences

    def _exact(self, queries: Array) -> tuple[Array, Array]:
        xp: Any = namespace(queries)
        near = nearest_places((queries - self._centre) @ self._product + self._offsets, self.k)
        differences, squared = self._measure(queries, near)
        order = xp.argsort(squared, axis=1)
        return gather(near, order), pick(differences, order)

    def _measure(self, queries: Array, near: Array) -> tuple[Array, Array]:
        """Return the differences to some points and their squared lengths, with ties broken."""
        xp: Any = namespace(queries)
        differences = self.points[near]
        differences -= queries[:, None, :]  # in place: a second array of this size takes longer than the subtraction
        return differences, xp.einsum("nkc,nkc->nk", differences, differences) + TIE_STEP * floats(near)


def nearest_places(distances: Array, k: int) -> Array:
    """Return the places of the k smallest distances of every row, in no order."""
    xp: Any = namespace(distances)
    n, width = distances.shape[0], distances.shape[1] // BLOCK
    if width <= 2 * k:
        return smallest_places(distances, k)
    # The nearest rows lie in the k blocks with the smallest minima: no other block is searched.
    blocks = distances.reshape(n, BLOCK, width)
    chosen = smallest_places(blocks.amin(dim=1) if is_tensor(blocks) else blocks.min(axis=1), k)
    steps = width * xp.arange(BLOCK, device=distances.device) if is_tensor(blocks) else width * np.arange(BLOCK)
    candidates = (chosen[:, None, :] + steps[None, :, None]).reshape(n, -1)
    return gather(candidates, smallest_places(gather(distances, candidates), k))
