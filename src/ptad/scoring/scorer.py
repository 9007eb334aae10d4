"""The frozen detector: network, reference rows and transport potentials, ready to score any row on its own.

NOTE[PAPER-01] Context ``reference``: every row attends to fixed training rows and to itself. Context ``batch``: rows
attend to the rows scored beside them, as in the text.

Scores are computed in double precision and rounded to single: what remains after the rounding does not depend on the
order in which a machine adds, so a row has the same score alone, in any batch, chunk or thread count. (In single
precision, a P-space mask on the edge of its threshold can flip, which moves the score visibly.)
"""

from __future__ import annotations

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
from ptad.scoring.space import Space

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
    space : Space
        The network's own view of the rows.
    retrieval : Retrieval, optional
        Reconstruction from retrieved training rows; with it, all parts are in units of a normal row's mean.
    network_factor : float
        What the network's score is multiplied by.
    """

    network: Network
    reference_rows: Tensor
    missing_rate: Tensor
    column_weight: Tensor
    space: Space
    retrieval: Retrieval | None = None
    network_factor: float = 1.0
    usual_falls: NDArray[np.float64] | None = field(default=None, init=False)  # see ``attribution``

    def __post_init__(self) -> None:
        self.network = self.network.double().eval().requires_grad_(False)
        self.reference_rows = self.reference_rows.double()
        self.space = self.space.to(self.device, torch.float64)
        with torch.inference_mode():
            output = self.network(self.space(self.reference_rows))
            self.reference: Reference = output.reference
            if self.space.pass_of is not None:
                output = self._output(self.reference_rows, self.reference)
            self.potentials: Potentials = solve_potentials(self.network, output)

    @property
    def device(self) -> torch.device:
        return self.reference_rows.device

    @property
    def chunk_rows(self) -> int:
        """Rows scored at once: bounds the largest intermediate, so memory stays flat in the number of rows."""
        config, n_features = self.network.config, self.network.n_features
        width = self.network.backbone.latent_dim * config.feedforward_factor
        if config.backbone in ("npt", "transformer"):
            width = max(width, config.n_heads * n_features**2)  # the logits between attributes
        largest = self.network.n_members * max(config.n_branches, self.space.n_passes) * width
        on_cpu = self.device.type == "cpu"
        n_rows = (2**20 if on_cpu else 2**25) // largest
        if self.retrieval is not None:
            distances = max(len(self.retrieval.bank), 2 * self.retrieval.n_neighbours * n_features)
            n_rows = min(n_rows, (2**20 if on_cpu else 2**27) // distances)
        return max(1, min(65536, n_rows + 1))

    def parts(self, x: Matrix, context: Context = "reference") -> Parts:
        """Return the score parts of every row."""
        return Parts.concatenate([judged.parts for judged in self._assess(x, context)])

    def cells(self, x: Matrix, context: Context = "reference") -> Cells:
        """Return contributions, expected values and masking rates of every cell."""
        return Cells.concatenate([judged.cells() for judged in self._assess(x, context)])

    def latent(self, x: Matrix, context: Context = "reference") -> NDArray[np.float32]:
        """Return the P-space representation by the first member, (n_rows, latent_dim)."""
        return np.concatenate([j.output.latent[0].float().cpu().numpy() for j in self._assess(x, context)])

    def _assess(self, x: Matrix, context: Context) -> Iterator[Assessment]:
        """Judge chunk by chunk."""
        if len(x) == 0:
            raise DataError("There are 0 rows to score. Give at least one.")
        n_rows = self.network.config.batch_size if context == "batch" else self.chunk_rows
        complete = not np.isnan(x).any()
        with torch.inference_mode():
            for start in range(0, len(x), n_rows):
                chunk = torch.from_numpy(x[start : start + n_rows]).to(self.device, torch.float64)
                if context == "reference":
                    yield self.judge(chunk, complete=complete)
                    continue
                rows = chunk.expand(self.network.n_members, -1, -1)
                output = self._output(rows, self._own_reference(rows))
                potentials = solve_potentials(self.network, output)
                yield assess(self.network, output, rows, potentials, self, complete=complete)

    def judge(self, chunk: Tensor, *, complete: bool = False) -> Assessment:
        """Judge encoded rows (n, d) in the reference context, as tensors; no operation waits for a value."""
        rows = chunk.expand(self.network.n_members, -1, -1)
        output = self._output(rows, self.reference)
        return assess(self.network, output, rows, self.potentials, self, complete=complete)

    def _output(self, rows: Tensor, reference: Reference | None) -> Output:
        """Pass encoded rows through the network, as often as there are passes, and take each cell's best witness."""
        hidden, branch = self.space.hide(self.space(rows), self.network.config.n_branches)
        if self.reference.decoder is not None:
            branch = None  # the reference rows were seen through all masks
        return self.space.gather(self.network(hidden, reference, branch))

    def _own_reference(self, rows: Tensor) -> Reference | None:
        """Return these rows as their own reference; None where one pass over them is all there is."""
        if self.space.pass_of is None or self.reference.encoder is None:
            return None
        return self.network(self.space(rows)).reference
