"""MCM + NPT: MCM's masks and losses around an NPT encoder and decoder.

References
----------
The combination is the paper's own comparison; parts: Yin et al. (MCM) 2024, Kossen et al. (NPT) 2021.

Departures
----------
* The paper does not say how the two are joined. Here every mask is a branch of its own: rows attend to rows under the
  same mask, encoder and decoder are one NPT layer each, shared by all masks.
* Settings of PTAD's ``paper`` preset: LAMB with Lookahead at 0.01, 500 steps, batch 512, e = 16, 4 heads; but the rate
  falls from the start, as in NPT-AD, without the preset's warm-up.
* Scoring uses a fixed reference set of training rows, as PTAD does, so that scores do not depend on the batch.
* On wide tables the batch and the attention between rows are cut as in NPT-AD, and reported in ``capped_``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import TrainingSettings
from ptad.benchmark.peers.mcm import MaskGenerators, Mcm, reconstruction_error
from ptad.benchmark.peers.npt_ad import ATTENTION_CELLS, Npt, NptPeer
from ptad.paper.attention import KeysValues
from ptad.paper.layers import Noise
from ptad.paper.settings import NetworkSettings

ReferenceKeys = list[KeysValues | None] | None


@dataclass(eq=False, kw_only=True)
class McmNpt(NptPeer, Mcm):
    """Mean reconstruction error over learned masks, restored by NPT layers."""

    default_training = TrainingSettings(steps=500, batch_size=512, learning_rate=0.01)

    n_reference: int = 512  # training rows that a scored row can see

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n_branches = self.n_masks

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return _MaskedNpt(n_features, self.n_masks, self._settings, self._noise, generator)

    def _after_training(self, rows: Tensor) -> None:
        generator = torch.Generator().manual_seed(self.random_state)
        chosen = torch.randperm(len(rows), generator=generator)[: self.n_reference]
        self._reference = self._module(rows[chosen.to(rows.device)])[2]
        cells_per_row = self._settings.n_heads * self.n_masks * rows.shape[1] ** 2
        self.chunk_rows = max(1, min(1024, ATTENTION_CELLS // cells_per_row))

    def _score_batch(self, batch: Tensor) -> Tensor:
        return reconstruction_error(batch, self._module(batch, self._reference)[0])


class _MaskedNpt(nn.Module):
    """Masks, then an NPT of two layers, encoder and decoder; every mask is a branch."""

    def __init__(
        self, n_features: int, n_masks: int, settings: NetworkSettings, noise: Noise, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.masks = MaskGenerators(n_features, n_masks, generator)
        self.npt = Npt(n_features, 2, settings, noise, generator)

    def forward(self, x: Tensor, reference: ReferenceKeys = None) -> tuple[Tensor, Tensor, ReferenceKeys]:
        """(n, d) -> reconstructions and raw masks, both (n, n_masks, d), and what other rows may look at."""
        raw_masks = self.masks(x)
        branches = (x.unsqueeze(1) * raw_masks.sigmoid()).transpose(0, 1)
        restored, seen = self.npt(branches, torch.zeros_like(branches), reference)
        return restored.transpose(0, 1), raw_masks, seen
