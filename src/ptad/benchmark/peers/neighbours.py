"""Nearest-neighbour peers: kNN, kNN on min-max columns, the first neighbour in clipped min-max space, DTE-NP.

All are one exact search with different scaling and a different summary of the distances: the search for reference rows
of PTAD, which also runs on a GPU; a test holds it equal to PyOD's ``KNN``.

References
----------
Ramaswamy, Rastogi, Shim. Efficient algorithms for mining outliers from large data sets. SIGMOD 2000.
Livernoche et al. On diffusion modeling for anomaly detection. ICLR 2024 (DTE-NP).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptad.arrays import on_device, to_numpy
from ptad.benchmark.peers.protocol import FloatArray, Peer, check_choice
from ptad.devices import resolve_device
from ptad.errors import SettingError
from ptad.reference.neighbours import Neighbours

# Cells of one block of distances: 256 MB in float64.
_BLOCK = 32_000_000


@dataclass(eq=False, kw_only=True)
class NearestNeighbours(Peer):
    """Distance to the training rows: the k-th nearest, or the mean of the k nearest.

    Parameters
    ----------
    n_neighbors : int
        k. Taken down to the number of training rows where there are fewer.
    summary : {"largest", "mean"}
        The k-th distance, or the mean of the first k.
    scaling : {"none", "minmax", "minmax-clipped"}
        ``"none"`` leaves the columns as they come; the other two fit a min-max scaling on the training rows, the
        last one also clips every test value to [-clip, 1 + clip] so that one wild cell cannot drown all others.
    clip : float
        How far a clipped value may lie beyond the training range, in widths of that range.
    """

    n_neighbors: int = 5
    summary: str = "largest"
    scaling: str = "none"
    clip: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.summary, ("largest", "mean"), "summary", self.name)
        check_choice(self.scaling, ("none", "minmax", "minmax-clipped"), "scaling", self.name)
        if not self.clip >= 0.0:
            raise SettingError(
                f"The 'clip' parameter of {self.name} must be a float in [0, inf). Got {self.clip!r} instead."
            )
        self.own_scaling = self.scaling != "none"

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores."""
        found = super().params()
        return found if self.scaling == "minmax-clipped" else {k: v for k, v in found.items() if k != "clip"}

    def _fit(self, rows: FloatArray) -> None:
        self._low = rows.min(axis=0)
        width = rows.max(axis=0) - self._low
        self._width = np.where(width > 0, width, 1.0)
        self._where = resolve_device(self.device)
        self._search = Neighbours(on_device(self._scale(rows), self._where), self.n_neighbors)

    def _score(self, rows: FloatArray) -> FloatArray:
        return np.concatenate([self._summary(part) for part in np.array_split(rows, self._n_blocks(rows))])

    def _n_blocks(self, rows: FloatArray) -> int:
        cells_per_row = max(len(self._search.points), self._search.k * rows.shape[1])
        return -(-len(rows) * cells_per_row // _BLOCK)

    def _summary(self, rows: FloatArray) -> FloatArray:
        _, differences = self._search(on_device(self._scale(rows), self._where))
        distances = np.linalg.norm(to_numpy(differences), axis=2)
        return np.asarray(distances[:, -1] if self.summary == "largest" else distances.mean(axis=1))

    def _scale(self, rows: FloatArray) -> FloatArray:
        if self.scaling == "none":
            return rows
        scaled = (rows - self._low) / self._width
        return np.clip(scaled, -self.clip, 1.0 + self.clip) if self.scaling == "minmax-clipped" else scaled
