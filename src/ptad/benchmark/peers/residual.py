"""PCA residual: how far a row lies from the principal subspace of the training rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.benchmark.peers.protocol import FloatArray, check_matrix
from ptad.errors import DataError, SettingError


class PrincipalResidual:
    """Squared distance to the smallest principal subspace that holds a share of the variance.

    Parameters
    ----------
    variance : float
        The share of the training variance that the subspace holds, in (0, 1). At least one direction is always left
        out, or every residual would be 0.
    random_state, device
        Unused: the method has no chance in it and needs no accelerator.
    """

    name = "pca"
    batch_dependent = False
    own_scaling = False

    def __init__(self, variance: float = 0.9, random_state: int = 0, device: str = "cpu") -> None:
        if not 0.0 < variance < 1.0:
            raise SettingError(f"The 'variance' parameter of pca must be a float in (0, 1). Got {variance!r} instead.")
        self.variance = variance
        self.random_state = random_state
        self.device = device
        self.n_parameters_ = 0
        self.capped_ = ""
        self.history_: list[dict[str, float]] = []

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores."""
        return {"variance": self.variance}

    def fit(self, X: npt.ArrayLike) -> Self:
        """Find the subspace."""
        rows = check_matrix(X, self.name)
        self._mean = rows.mean(axis=0)
        centred = rows - self._mean
        values, vectors = np.linalg.eigh(centred.T @ centred / rows.shape[0])
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        total = values.sum()
        held = np.cumsum(values) / total if total > 0 else np.ones_like(values)
        # The slack keeps a share that is met exactly (0.9 of 0.9) from asking for one direction more.
        n_kept = min(int(np.searchsorted(held, self.variance - 1e-12)) + 1, len(values) - 1)
        self._directions = vectors[:, :n_kept]
        self.n_parameters_ = int(self._directions.size + self._mean.size)
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """The squared residual; higher is more anomalous."""
        if not hasattr(self, "_mean"):
            raise DataError("pca has not been fitted: call fit first.")
        centred = check_matrix(X, self.name, self._mean.shape[0]) - self._mean
        residual = centred - (centred @ self._directions) @ self._directions.T
        return np.asarray(np.square(residual).sum(axis=1), dtype=np.float64)
