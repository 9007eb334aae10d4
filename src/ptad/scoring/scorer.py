"""The frozen detector: network, reference rows and transport potentials, ready to score any row on its own.

NOTE[PAPER-01] Context ``reference``: every row attends to fixed training rows and to itself. Context ``batch``: rows
attend to the rows scored beside them, as in the text.

Scores are computed in double precision and rounded to single: what remains after the rounding does not depend on the
order in which a machine adds, so a row has the same score alone, in any batch, chunk or thread count. (In single
precision, a P-space mask on the edge of its threshold can flip, which moves the score visibly.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptad.errors import DataError
from ptad.model import Network, Output, Reference
from ptad.scoring.parts import Assessment, Cells, Parts, Potentials, assess, solve_potentials
from ptad.scoring.retrieval import Retrieval

Context = Literal["reference", "batch"]
Matrix = NDArray[np.float32]


@dataclass
class Scorer:
    """Scores encoded rows.

    Parameters
    ----------
    network : Network
        The scoring members, in double precision.
    reference_rows : Tensor
        (n_members, n_reference, n_features), the training rows that stand for all.
    missing_rate : Tensor
        (n_features,) share of training rows in which each column was missing.
    column_weight : Tensor
        (n_features,) 1 / number of encoded columns of the same original column.
    retrieval : Retrieval, optional
        Reconstruction from retrieved training rows; with it, all parts are in units of a normal row's mean.
    """

    network: Network
    reference_rows: Tensor
    missing_rate: Tensor
    column_weight: Tensor
    retrieval: Retrieval | None = None
    usual_falls: NDArray[np.float64] | None = field(default=None, init=False)  # see ``attribution``

    def __post_init__(self) -> None:
        self.network = self.network.double().eval().requires_grad_(False)
        self.reference_rows = self.reference_rows.double()
        with torch.inference_mode():
            output = self.network(self.reference_rows)
            self.reference: Reference = output.reference
            self.potentials: Potentials = solve_potentials(self.network, output)
            self.network_unit = 1.0
            if self.retrieval is not None:
                judged = assess(self.network, output, self.reference_rows, self.potentials, self)
                mean, weight = float(judged.network_score.mean()), self.network.config.network_weight
                self.network_unit = max(mean, 1e-12) / weight if weight else math.inf

    @property
    def device(self) -> torch.device:
        return self.reference_rows.device

    @property
    def chunk_rows(self) -> int:
        """Rows scored at once: bounds the largest intermediate, so memory stays flat in the number of rows."""
        config = self.network.config
        per_row = self.network.n_members * config.n_branches * self.network.backbone.latent_dim
        largest = per_row * config.feedforward_factor
        if self.retrieval is not None:
            n_bank, n_features = self.retrieval.bank.shape
            largest = max(largest, n_bank, 2 * self.retrieval.n_neighbours * n_features)
        budget = 2**22 if self.device.type == "cpu" else 2**25
        return max(1, min(65536, budget // largest + 1))

    def parts(self, x: Matrix, context: Context = "reference") -> Parts:
        """Return the score parts of every row."""
        return Parts.concatenate([judged.parts for judged in self._assess(x, context)])

    def cells(self, x: Matrix, context: Context = "reference") -> Cells:
        """Return contributions, expected values and masking rates of every cell."""
        return Cells.concatenate([judged.cells() for judged in self._assess(x, context)])

    def latent(self, x: Matrix, context: Context = "reference") -> NDArray[np.float32]:
        """Return the P-space representation by the first member, (n_rows, latent_dim)."""
        return np.concatenate([o.latent[0].float().cpu().numpy() for _, o, _ in self._passes(x, context)])

    def _assess(self, x: Matrix, context: Context) -> Iterator[Assessment]:
        for chunk, output, potentials in self._passes(x, context):
            yield assess(self.network, output, chunk, potentials, self)

    def _passes(self, x: Matrix, context: Context) -> Iterator[tuple[Tensor, Output, Potentials]]:
        """Yield (rows, output, potentials) chunk by chunk."""
        if len(x) == 0:
            raise DataError("There are 0 rows to score. Give at least one.")
        n_rows = self.network.config.batch_size if context == "batch" else self.chunk_rows
        with torch.inference_mode():
            for start in range(0, len(x), n_rows):
                chunk = torch.from_numpy(x[start : start + n_rows]).to(self.device, torch.float64)
                chunk = chunk.expand(self.network.n_members, -1, -1)
                if context == "batch":
                    output = self.network(chunk)
                    yield chunk, output, solve_potentials(self.network, output)
                else:
                    yield chunk, self.network(chunk, self.reference), self.potentials
