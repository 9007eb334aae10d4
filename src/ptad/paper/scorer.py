"""The frozen network with its reference rows and transport potentials, ready to score any row on its own.

NOTE[PAPER-01] Context ``reference``: every row attends to fixed training rows and to itself. Context ``batch``: rows
attend to the rows scored beside them, as in the text.

Scores are computed in double precision; their user rounds them to single. What remains after the rounding does not
depend on the order in which a machine adds, so a row has the same score alone, in any batch, chunk or thread count. (In
single precision, a P-space mask on the edge of its threshold can flip, which moves the score visibly.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from ptad.paper.network import Network, Reference
from ptad.paper.scores import Potentials, Scores, score_output, solve_potentials


class Scorer:
    """Scores encoded rows.

    Parameters
    ----------
    network : Network
        Trained; it is put into double precision and frozen.
    reference : Tensor
        (n_reference, n_encoded), the training rows that stand for all.
    indicator_errors : pair of Tensor
        (n_encoded,) each: what an observed and what a missing cell adds to the score.
    """

    def __init__(self, network: Network, reference: Tensor, indicator_errors: tuple[Tensor, Tensor]) -> None:
        self.network = network.double().eval().requires_grad_(False)
        self.indicator_errors = indicator_errors
        self.reference: Reference | None = None
        self.potentials: Potentials | None = None
        if network.settings.context == "reference":
            with torch.no_grad():
                output = self.network(reference.double())
                self.reference = output.reference
                self.potentials = solve_potentials(self.network, output)

    @property
    def device(self) -> torch.device:
        return self.indicator_errors[0].device

    @property
    def chunk_rows(self) -> int:
        """Rows scored at once: those of a batch, or so many that the largest intermediate stays small."""
        settings, n_features = self.network.settings, self.network.n_features
        if settings.context == "batch":
            return settings.batch_size
        width = self.network.backbone.latent_dim * settings.feedforward_factor
        if settings.backbone != "mlp":
            width = max(width, settings.n_heads * n_features**2)  # the logits between attributes
        n_cells = 2**20 if self.device.type == "cpu" else 2**25
        return max(1, min(65536, n_cells // (settings.n_branches * width) + 1))

    def __call__(self, x: Tensor) -> Scores:
        """Score encoded rows (n, d), a whole chunk or batch; no operation waits for a value."""
        x = x.double()
        output = self.network(x, self.reference)
        # NOTE[PAPER-02] In the batch context the plan is solved over the batch, as in the text.
        potentials = solve_potentials(self.network, output) if self.potentials is None else self.potentials
        return score_output(self.network, output, x, potentials, self.indicator_errors)
