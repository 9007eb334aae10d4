"""NPT-AD: hide a column and measure how well the row's other columns and the training rows reconstruct it.

References
----------
Thimonier et al. Beyond individual input for deep anomaly detection on tabular data. ICML 2024.
Kossen et al. Self-attention between datapoints. NeurIPS 2021 (the network).

Departures
----------
* One setting for all tables: e = 16, learning rate 0.01, 500 steps (the median of the published ones), mask probability
  0.15. The original has its own numbers per table.
* Masks of one column at a time (r = 1) only; the original goes up to r = 4 on some tables.
* At scoring a row sees the training rows and itself, never the other test rows. The original feeds test rows together,
  so that a score depends on its neighbours in the batch.
* At most ``n_context`` training rows are the context, drawn once; at most ``max_subsets`` columns are hidden, drawn
  once. On wide tables the training batch is cut so that the attention between columns fits in memory, and the attention
  between rows is factorised where columns times e exceed 2,048. Every such cut is reported in ``capped_``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, TrainingSettings
from ptad.paper.attention import KeysValues
from ptad.paper.embedding import FeatureEmbedding, FeatureReadout
from ptad.paper.layers import Noise
from ptad.paper.npt import FALLBACK_ABD_WIDTH, NPTLayer
from ptad.paper.settings import NetworkSettings

# Cells of one attention matrix between columns, over all rows and heads: 0.8 GB in float32.
ATTENTION_CELLS = 200_000_000


@dataclass(eq=False, kw_only=True)
class NptPeer(DeepPeer):
    """Base class of the methods that consist of NPT layers and are trained like NPT."""

    optimizer = "lamb"
    n_branches = 1  # how many times a row goes through the layers at once

    network: dict[str, Any] = field(default_factory=dict)  # of NetworkSettings: embedding, heads, widths

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settings = NetworkSettings(**self.network)

    def _training_for(self, n_rows: int, n_features: int) -> tuple[TrainingSettings, str]:
        self._add_cap(row_attention_cap(n_features, self._settings))
        return fit_batch(self.schedule, n_rows, n_features, self._settings.n_heads * self.n_branches)


@dataclass(eq=False, kw_only=True)
class NptAD(NptPeer):
    """Sum of squared errors on hidden cells, each column hidden in turn."""

    default_training = TrainingSettings(steps=500, batch_size=4096, learning_rate=0.01)

    n_layers: int = 2  # pairs of attention between rows and between columns
    mask_probability: float = 0.15  # share of cells hidden while training
    n_context: int = 1024  # training rows that a scored row can see
    max_subsets: int = 64  # columns hidden at scoring, one at a time

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        return Npt(n_features, self.n_layers, self._settings, self._noise, generator)

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        hidden = torch.empty_like(batch).bernoulli_(self.mask_probability, generator=generator)
        restored, _ = self._module(batch * (1.0 - hidden), hidden)
        return masked_error(batch, restored, hidden)

    def _after_training(self, rows: Tensor) -> None:
        generator = torch.Generator().manual_seed(self.random_state)
        n_rows, n_features = rows.shape
        context = rows
        if n_rows > self.n_context:
            context = rows[torch.randperm(n_rows, generator=generator)[: self.n_context].to(rows.device)]
            self._add_cap(f"{self.n_context} of {n_rows} training rows in the context")
        self._columns = torch.arange(n_features)
        if n_features > self.max_subsets:
            self._columns = torch.randperm(n_features, generator=generator)[: self.max_subsets].sort().values
            self._add_cap(f"{self.max_subsets} of {n_features} columns hidden in turn")
        _, self._references = self._module(context, torch.zeros_like(context))
        # One pass holds all rows of a chunk; wide tables need shorter chunks.
        self.chunk_rows = max(1, min(4096, ATTENTION_CELLS // (4 * n_features * n_features)))

    def _score_batch(self, batch: Tensor) -> Tensor:
        score = torch.zeros(len(batch), device=batch.device)
        for column in self._columns.tolist():
            hidden = torch.zeros_like(batch)
            hidden[:, column] = 1.0
            restored, _ = self._module(batch * (1.0 - hidden), hidden, self._references)
            score += (restored[:, column] - batch[:, column]).square()
        return score


class Npt(nn.Module):
    """Embedding, a stack of NPT layers, readout; (n, d) values and mask bits -> (n, d), or so many branches of them."""

    def __init__(
        self, n_features: int, n_layers: int, settings: NetworkSettings, noise: Noise, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.embedding = FeatureEmbedding(generator, n_features, settings.embedding_dim, settings.dropout, noise)
        self.layers = nn.ModuleList(NPTLayer(generator, n_features, settings, noise) for _ in range(n_layers))
        self.readout = FeatureReadout(generator, n_features, settings.embedding_dim)

    def forward(
        self, x: Tensor, hidden: Tensor, references: Sequence[KeysValues | None] | None = None
    ) -> tuple[Tensor, list[KeysValues | None]]:
        """Return the restored rows, and keys and values of each layer for other rows to attend to."""
        cells = self.embedding(x, hidden)
        cells = cells.unsqueeze(0) if x.ndim == 2 else cells
        seen: list[KeysValues | None] = []
        for position, layer in enumerate(self.layers):
            cells, keys_values, _ = layer(cells, None if references is None else references[position])
            seen.append(keys_values)
        restored = self.readout(cells)
        return restored[0] if x.ndim == 2 else restored, seen


def masked_error(x: Tensor, restored: Tensor, hidden: Tensor) -> Tensor:
    """Mean squared error over the hidden cells."""
    return ((restored - x).square() * hidden).sum() / hidden.sum().clamp_min(1.0)


def row_attention_cap(n_features: int, settings: NetworkSettings) -> str:
    """Return the reason if the attention between rows is narrower than the table needs, else an empty text."""
    full = n_features * settings.embedding_dim
    if settings.abd_width is not None or full <= max(settings.abd_full_limit, FALLBACK_ABD_WIDTH):
        return ""
    return f"attention between rows at width {FALLBACK_ABD_WIDTH} instead of {full}"


def fit_batch(settings: TrainingSettings, n_rows: int, n_features: int, n_copies: int) -> tuple[TrainingSettings, str]:
    """Reduce the batch size if the attention between columns would not fit in memory; return settings and reason."""
    batch_size = min(settings.batch_size, n_rows)
    largest = max(2, ATTENTION_CELLS // (n_copies * n_features * n_features))
    if largest >= batch_size:
        return settings, ""
    return replace(settings, batch_size=largest), f"batches of {largest} instead of {batch_size} rows"
