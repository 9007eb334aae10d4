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

from typing import Any

import torch
from torch import Tensor, nn

from ptad.config import Config
from ptad.model.attention import KeysValues
from ptad.model.embedding import FeatureEmbedding, FeatureReadout
from ptad.model.layers import Noise
from ptad.model.npt import NPTLayer
from ptad.peers.deep import DeepPeer
from ptad.peers.mcm import MaskGenerators, diversity_loss, reconstruction_error
from ptad.peers.nptad import ATTENTION_CELLS, fit_batch, lamb_factory, row_attention_cap
from ptad.peers.training import RuleFactory, TrainingSettings

Reference = tuple[KeysValues | None, KeysValues | None]


class McmNpt(DeepPeer):
    """Mean reconstruction error over learned masks, restored by NPT layers.

    Parameters
    ----------
    n_masks : int
        Mask generators.
    diversity_weight, temperature : float
        Of the term that keeps the masks apart.
    n_reference : int
        Training rows that a scored row can see.
    network : dict, optional
        Fields of :class:`ptad.config.Config` for the network (embedding, heads, widths).
    """

    name = "mcm-npt"
    default_training = TrainingSettings(steps=500, batch_size=512, learning_rate=0.01)

    def __init__(
        self,
        n_masks: int = 15,
        diversity_weight: float = 5.0,
        temperature: float = 0.1,
        n_reference: int = 512,
        network: dict[str, Any] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.n_masks = n_masks
        self.diversity_weight = diversity_weight
        self.temperature = temperature
        self.n_reference = n_reference
        self.network = dict(network or {})
        self._config = Config(**self.network)

    def _own_params(self) -> dict[str, Any]:
        return {
            "n_masks": self.n_masks,
            "diversity_weight": self.diversity_weight,
            "temperature": self.temperature,
            "n_reference": self.n_reference,
            "network": self.network,
        }

    def _build(self, n_features: int, n_rows: int, generator: torch.Generator) -> nn.Module:
        self._noise = Noise()
        self._add_cap(row_attention_cap(n_features, self._config))
        return _MaskedNpt(n_features, self.n_masks, self._config, self._noise, generator)

    def _training_for(self, n_rows: int, n_features: int) -> tuple[TrainingSettings, str]:
        return fit_batch(self.training, n_rows, n_features, self._config.n_heads * self.n_masks)

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        self._noise.generator = generator
        reconstructions, raw_masks, _ = self._module(batch)
        diversity = diversity_loss(raw_masks, self.temperature).mean()
        return reconstruction_error(batch, reconstructions).mean() + self.diversity_weight * diversity

    def _after_training(self, rows: Tensor) -> None:
        self._noise.generator = None
        generator = torch.Generator().manual_seed(self.random_state)
        chosen = torch.randperm(len(rows), generator=generator)[: self.n_reference]
        self._reference = self._module(rows[chosen.to(rows.device)])[2]
        cells_per_row = self._config.n_heads * self.n_masks * rows.shape[1] ** 2
        self.chunk_rows = max(1, min(1024, ATTENTION_CELLS // cells_per_row))

    def _score(self, batch: Tensor) -> Tensor:
        return reconstruction_error(batch, self._module(batch, self._reference)[0])

    def _rule_factory(self) -> RuleFactory:
        return lamb_factory(self.training)


class _MaskedNpt(nn.Module):
    """Masks, embedding, NPT encoder, NPT decoder, readout; every mask is a branch."""

    def __init__(self, n_features: int, n_masks: int, config: Config, noise: Noise, generator: torch.Generator) -> None:
        super().__init__()
        one = [generator]
        self.masks = MaskGenerators(n_features, n_masks, generator)
        self.embedding = FeatureEmbedding(one, n_features, config.embedding_dim, config.dropout, noise)
        self.encoder = NPTLayer(one, n_features, config, noise)
        self.decoder = NPTLayer(one, n_features, config, noise)
        self.readout = FeatureReadout(one, n_features, config.embedding_dim)

    def forward(self, x: Tensor, reference: Reference = (None, None)) -> tuple[Tensor, Tensor, Reference]:
        """(n, d) -> reconstructions and raw masks, both (n, n_masks, d), and what other rows may look at."""
        raw_masks = self.masks(x)
        branches = (x.unsqueeze(1) * raw_masks.sigmoid()).transpose(0, 1)
        n_masks, n_rows, n_features = branches.shape
        flat = branches.reshape(1, n_masks * n_rows, n_features)
        cells = self.embedding(flat, torch.zeros_like(flat)).view(1, n_masks, n_rows, n_features, -1)
        cells, encoder_seen, _ = self.encoder(cells, reference[0])
        cells, decoder_seen, _ = self.decoder(cells, reference[1])
        return self.readout(cells)[0].transpose(0, 1), raw_masks, (encoder_seen, decoder_seen)
