"""Nearest-neighbour peers: kNN, kNN on min-max columns, the first neighbour in clipped min-max space, DTE-NP.

All are one exact search with different scaling and a different summary of the distances. The search is written
here instead of taken from PyOD so that the largest tables run on a GPU; a test holds it equal to PyOD's ``KNN``.

References
----------
Ramaswamy, Rastogi, Shim. Efficient algorithms for mining outliers from large data sets. SIGMOD 2000.
Livernoche et al. On diffusion modeling for anomaly detection. ICLR 2024 (DTE-NP).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.benchmark.peers.protocol import FloatArray, check_choice, check_matrix
from ptad.devices import resolve_device
from ptad.errors import DataError, SettingError

# Cells of one block of the distance matrix: 256 MB in float64.
_BLOCK = 32_000_000


class NearestNeighbours:
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
    random_state : int
        Unused: the method has no chance in it. Accepted so that all peers are made alike.
    device : str
        Where the distances are computed.
    name : str
        The registry name.
    """

    batch_dependent = False

    def __init__(
        self,
        n_neighbors: int = 5,
        summary: str = "largest",
        scaling: str = "none",
        clip: float = 0.5,
        random_state: int = 0,
        device: str = "cpu",
        name: str = "knn",
    ) -> None:
        check_choice(summary, ("largest", "mean"), "summary", name)
        check_choice(scaling, ("none", "minmax", "minmax-clipped"), "scaling", name)
        if not clip >= 0.0:
            raise SettingError(f"The 'clip' parameter of {name} must be a float in [0, inf). Got {clip!r} instead.")
        self.n_neighbors = n_neighbors
        self.summary = summary
        self.scaling = scaling
        self.clip = clip
        self.random_state = random_state
        self.device = device
        self.name = name
        self.own_scaling = scaling != "none"
        self.n_parameters_ = 0
        self.capped_ = ""
        self.history_: list[dict[str, float]] = []

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores."""
        own: dict[str, Any] = {"n_neighbors": self.n_neighbors, "summary": self.summary, "scaling": self.scaling}
        return {**own, "clip": self.clip} if self.scaling == "minmax-clipped" else own

    def fit(self, X: npt.ArrayLike) -> Self:
        """Keep the training rows."""
        rows = check_matrix(X, self.name)
        self._low = rows.min(axis=0)
        width = rows.max(axis=0) - self._low
        self._width = np.where(width > 0, width, 1.0)
        self._rows = self._scale(rows)
        # Centring makes the expanded square |a|^2 - 2ab + |b|^2 lose fewer digits.
        self._centre = self._rows.mean(axis=0)
        self._rows = self._rows - self._centre
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """The distance to the training rows; higher is more anomalous."""
        if not hasattr(self, "_rows"):
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        rows = self._scale(check_matrix(X, self.name, self._rows.shape[1])) - self._centre
        distances = nearest_distances(self._rows, rows, self.n_neighbors, resolve_device(self.device))
        return distances[:, -1] if self.summary == "largest" else distances.mean(axis=1)

    def _scale(self, rows: FloatArray) -> FloatArray:
        if self.scaling == "none":
            return rows
        scaled = (rows - self._low) / self._width
        return np.clip(scaled, -self.clip, 1.0 + self.clip) if self.scaling == "minmax-clipped" else scaled


def nearest_distances(train: FloatArray, rows: FloatArray, k: int, device: str) -> FloatArray:
    """Exact Euclidean distances of ``rows`` to their ``k`` nearest rows of ``train``, nearest first.

    Shape
    -----
    train : (n_train, n_features), rows : (n_rows, n_features) -> (n_rows, min(k, n_train))

    Notes
    -----
    The expanded square picks the neighbours; their distances are then computed anew from differences, since the
    expanded form gives an exact twin a distance of about 1e-7 instead of 0.
    """
    import torch

    k = min(k, train.shape[0])
    bank = torch.as_tensor(train, device=device)
    bank_norm = bank.square().sum(1)
    block = max(1, _BLOCK // max(train.shape[0], k * train.shape[1]))
    found = []
    for part in torch.as_tensor(rows).split(block):
        query = part.to(device)
        square = torch.addmm(bank_norm.unsqueeze(0), query, bank.T, alpha=-2.0)
        index = square.topk(k, dim=1, largest=False).indices
        exact = (query.unsqueeze(1) - bank[index]).norm(dim=2)
        found.append(exact.sort(dim=1).values.cpu())
    result: FloatArray = torch.cat(found).numpy()
    return result
