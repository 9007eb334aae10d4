"""An NPT layer: attention between datapoints (ABD), then attention between attributes (ABA).

Shape
-----
cells        (n_branches, n_rows, n_features, embedding_dim)
association  (n_branches, n_rows, n_features)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ptad.paper.attention import AttentionBlock, KeysValues
from ptad.paper.layers import Linear, Noise
from ptad.paper.settings import NetworkSettings

FALLBACK_ABD_WIDTH = 128


class BetweenDatapoints(nn.Module):
    """ABD: rows attend to rows.

    NOTE[PAPER-10] At the full width d * e it has 13 (d e)^2 parameters; the factorised form projects to a fixed width,
    attends there and adds the result, projected back, to its input.
    """

    def __init__(self, generator: torch.Generator, n_features: int, settings: NetworkSettings, noise: Noise) -> None:
        super().__init__()
        full = n_features * settings.embedding_dim
        width = settings.abd_width
        if width is None and full > settings.abd_full_limit:
            width = math.ceil(FALLBACK_ABD_WIDTH / settings.n_heads) * settings.n_heads
        self.factorised = width is not None and width < full
        inner = width if width is not None and self.factorised else full
        if self.factorised:
            self.down = Linear(generator, full, inner)
            self.up = Linear(generator, inner, full)
        self.block = AttentionBlock(generator, inner, settings, noise)

    def forward(self, cells: Tensor, reference: KeysValues | None = None) -> tuple[Tensor, KeysValues]:
        rows = cells.flatten(-2)
        if not self.factorised:
            rows, _, keys, values = self.block(rows, reference)
        else:
            attended, _, keys, values = self.block(self.down(rows), reference)
            rows = rows + self.up(attended)
        return rows.view_as(cells), KeysValues(keys, values)


class BetweenAttributes(nn.Module):
    """ABA: the columns of a row attend to each other; rows never mix."""

    def __init__(self, generator: torch.Generator, settings: NetworkSettings, noise: Noise) -> None:
        super().__init__()
        self.block = AttentionBlock(generator, settings.embedding_dim, settings, noise)

    def forward(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new cells and the association vectors pi (section IV-B).

        NOTE[PAPER-06] pi_i = sum_j q_ij k_ij / sqrt(h_k), averaged over the heads (and over branches by the caller).
        """
        rows, q, k, _ = self.block(cells.flatten(0, 1))
        association = (q * k).sum(dim=-1).mean(dim=-2) / math.sqrt(q.shape[-1])
        return rows.view_as(cells), association.view(cells.shape[:-1])


class NPTLayer(nn.Module):
    """ABD then ABA; without ABD it is a plain transformer layer over the columns."""

    def __init__(
        self,
        generator: torch.Generator,
        n_features: int,
        settings: NetworkSettings,
        noise: Noise,
        *,
        datapoints: bool = True,
    ) -> None:
        super().__init__()
        self.between_datapoints = BetweenDatapoints(generator, n_features, settings, noise) if datapoints else None
        self.between_attributes = BetweenAttributes(generator, settings, noise)

    def forward(self, cells: Tensor, reference: KeysValues | None = None) -> tuple[Tensor, KeysValues | None, Tensor]:
        """Return the new cells, the keys and values of the ABD, and the association vectors."""
        keys_values = None
        if self.between_datapoints is not None:
            cells, keys_values = self.between_datapoints(cells, reference)
        cells, association = self.between_attributes(cells)
        return cells, keys_values, association
