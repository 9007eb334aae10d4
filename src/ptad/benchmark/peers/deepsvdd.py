"""Deep SVDD: learn a map that gathers normal rows around a fixed centre.

References
----------
Ruff et al. Deep one-class classification. ICML 2018.

Departures
----------
* Tabular MLP 100-50-128 as in the compared library instead of the paper's image nets; no autoencoder pre-training.
* Written here, not taken from PyOD: PyOD's class seeds the global generators, shuffles with them and has no GPU path.
  (Releases of PyOD before 3.6.3 did not train at all.)
* The soft-boundary variant is not built; the one-class objective is what the comparison uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, mlp

HIDDEN = (100, 50)
N_OUTPUT = 128
PUSH = 0.1


@dataclass(eq=False, kw_only=True)
class DeepSVDD(DeepPeer):
    """Squared distance to the centre of an MLP without bias."""

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return mlp((n_features, *HIDDEN, N_OUTPUT), generator, nn.LeakyReLU())

    def _before_training(self, rows: Tensor) -> None:
        outputs = torch.cat([self._module(part) for part in rows.split(8192)])
        self._centre = push_from_zero(outputs.mean(0))

    def _score_batch(self, batch: Tensor) -> Tensor:
        return (self._module(batch) - self._centre).square().sum(1)


def push_from_zero(centre: Tensor) -> Tensor:
    """Move coordinates nearer to 0 than ``PUSH`` out to it: a zero centre is met by zero weights."""
    return torch.where(centre.abs() < PUSH, torch.where(centre < 0, -PUSH, PUSH), centre)
