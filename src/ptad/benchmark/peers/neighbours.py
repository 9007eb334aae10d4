"""Nearest-neighbour peers: kNN, kNN on min-max columns, the first neighbour in clipped min-max space, DTE-NP.

All are one exact search with different scalings and summaries of the distances. It is written here so that the largest
tables run on a GPU; a test compares it with PyOD's ``KNN``. PTAD's own search rounds differently, and on tables full of
duplicate rows the last digit of a distance decides ties and with them the published results.

References
----------
Ramaswamy, Rastogi, Shim. Efficient algorithms for mining outliers from large data sets. SIGMOD 2000.
Livernoche et al. On diffusion modeling for anomaly detection. ICLR 2024 (DTE-NP).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer, check_choice
from ptad.devices import resolve_device
from ptad.errors import SettingError

# Cells of one block of the distance matrix: 256 MB in float64.
_BLOCK = 32_000_000


@dataclass(eq=False, kw_only=True)
class NearestNeighbours(Peer):
    """Distance to the training rows: the k-th nearest, or the mean of the k nearest."""

    n_neighbors: int = 5  # k; the number of training rows if there are fewer
    summary: str = "largest"  # the k-th distance, or the "mean" of the first k
    #: "none" leaves the columns as they come; "minmax" fits a scaling on the training rows; "minmax-clipped" also clips
    #: every test value to [-clip, 1 + clip], so that one wild cell cannot drown all others.
    scaling: str = "none"
    clip: float = 0.5  # in widths of the training range

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
        """Return every setting that affects the scores."""
        params = super().params()
        if self.scaling != "minmax-clipped":
            del params["clip"]
        return params

    def _fit(self, rows: Matrix) -> None:
        self._low = rows.min(axis=0)
        width = rows.max(axis=0) - self._low
        self._width = np.where(width > 0, width, 1.0)
        self._rows = self._scale(rows)
        # Centring makes the expanded square |a|^2 - 2ab + |b|^2 lose fewer digits.
        self._centre = self._rows.mean(axis=0)
        self._rows = self._rows - self._centre

    def _score(self, rows: Matrix) -> Matrix:
        rows = self._scale(rows) - self._centre
        distances = nearest_distances(self._rows, rows, self.n_neighbors, resolve_device(self.device))
        return distances[:, -1] if self.summary == "largest" else distances.mean(axis=1)

    def _scale(self, rows: Matrix) -> Matrix:
        if self.scaling == "none":
            return rows
        scaled = (rows - self._low) / self._width
        return np.clip(scaled, -self.clip, 1.0 + self.clip) if self.scaling == "minmax-clipped" else scaled


def nearest_distances(train: Matrix, rows: Matrix, k: int, device: str) -> Matrix:
    """Return the Euclidean distances of ``rows`` to their ``k`` nearest rows of ``train``, nearest first.

    (n_train, n_features), (n_rows, n_features) -> (n_rows, min(k, n_train)). The expanded square finds the neighbours;
    their distances are computed again from differences, since the expanded form gives an exact duplicate a distance of
    about 1e-7 instead of 0.
    """
    import torch

    k = min(k, train.shape[0])
    reference = torch.as_tensor(train, device=device)
    reference_norm = reference.square().sum(1)
    block = max(1, _BLOCK // max(train.shape[0], k * train.shape[1]))
    distances = []
    for part in torch.as_tensor(rows).split(block):
        query = part.to(device)
        square = torch.addmm(reference_norm.unsqueeze(0), query, reference.T, alpha=-2.0)
        index = square.topk(k, dim=1, largest=False).indices
        exact = (query.unsqueeze(1) - reference[index]).norm(dim=2)
        distances.append(exact.sort(dim=1).values.cpu())
    return np.asarray(torch.cat(distances))
