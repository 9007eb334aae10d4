"""PCA residual: how far a row lies from the principal subspace of the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer
from ptad.errors import SettingError


@dataclass(eq=False, kw_only=True)
class PrincipalResidual(Peer):
    """Squared distance to the smallest principal subspace that holds a share of the variance."""

    variance: float = 0.9  # at least one direction is always left out, or every residual would be 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.variance < 1.0:
            raise SettingError(
                f"The 'variance' parameter of pca must be a float in (0, 1). Got {self.variance!r} instead."
            )

    def _fit(self, rows: Matrix) -> None:
        self._mean = rows.mean(axis=0)
        centred = rows - self._mean
        values, vectors = np.linalg.eigh(centred.T @ centred / rows.shape[0])
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        total = values.sum()
        explained = np.cumsum(values) / total if total > 0 else np.ones_like(values)
        # With the tolerance, a share that is reached exactly needs no further direction.
        n_components = min(int(np.searchsorted(explained, self.variance - 1e-12)) + 1, len(values) - 1)
        self._directions = vectors[:, :n_components]
        self.n_parameters_ = int(self._directions.size + self._mean.size)

    def _score(self, rows: Matrix) -> Matrix:
        centred = rows - self._mean
        residual = centred - (centred @ self._directions) @ self._directions.T
        return np.asarray(np.square(residual).sum(axis=1))
