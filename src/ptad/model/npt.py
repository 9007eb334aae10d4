"""An NPT layer: attention between datapoints (ABD), then attention between attributes (ABA).

Shape
-----
cells        (n_members, n_branches, n_rows, n_features, embedding_dim)
association  (n_members, n_branches, n_rows, n_features)
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from ptad.config import Config
from ptad.model.attention import AttentionBlock, KeysValues
from ptad.model.layers import Generators, Linear, Noise

FALLBACK_ABD_WIDTH = 128


class BetweenDatapoints(nn.Module):
    """ABD: rows attend to rows.

    NOTE[PAPER-10] At the full width d * e it has 13 (d e)^2 parameters; the factorised form projects to a fixed width,
    attends there and adds the result, projected back, to its input.
    """

    def __init__(self, generators: Generators, n_features: int, config: Config, noise: Noise) -> None:
        super().__init__()
        full = n_features * config.embedding_dim
        width = config.abd_width
        if width is None and full > config.abd_full_limit:
            width = math.ceil(FALLBACK_ABD_WIDTH / config.n_heads) * config.n_heads
        self.factorised = width is not None and width < full
        inner = width if width is not None and self.factorised else full
        if self.factorised:
            self.down = Linear(generators, full, inner)
            self.up = Linear(generators, inner, full)
        self.block = AttentionBlock(
            generators,
            inner,
            n_heads=config.n_heads,
            feedforward_factor=config.feedforward_factor,
            dropout=config.dropout,
            noise=noise,
        )

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

    def __init__(self, generators: Generators, config: Config, noise: Noise) -> None:
        super().__init__()
        self.block = AttentionBlock(
            generators,
            config.embedding_dim,
            n_heads=config.n_heads,
            feedforward_factor=config.feedforward_factor,
            dropout=config.dropout,
            noise=noise,
        )

    def forward(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the new cells and the association vectors pi (section IV-B).

        NOTE[PAPER-06] pi_i = sum_j q_ij k_ij / sqrt(h_k), averaged over the heads (and over branches by the caller).
        """
        rows, q, k, _ = self.block(cells.flatten(1, 2))
        association = (q * k).sum(dim=-1).mean(dim=-2) / math.sqrt(q.shape[-1])
        return rows.view_as(cells), association.view(cells.shape[:-1])


class NPTLayer(nn.Module):
    """ABD then ABA; without ABD it is a plain transformer layer over the columns."""

    def __init__(
        self, generators: Generators, n_features: int, config: Config, noise: Noise, *, datapoints: bool = True
    ) -> None:
        super().__init__()
        self.between_datapoints = BetweenDatapoints(generators, n_features, config, noise) if datapoints else None
        self.between_attributes = BetweenAttributes(generators, config, noise)

    def forward(self, cells: Tensor, reference: KeysValues | None = None) -> tuple[Tensor, KeysValues | None, Tensor]:
        """Return the new cells, the keys and values of the ABD, and the association vectors."""
        keys_values = None
        if self.between_datapoints is not None:
            cells, keys_values = self.between_datapoints(cells, reference)
        cells, association = self.between_attributes(cells)
        return cells, keys_values, association
