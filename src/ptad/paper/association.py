"""Association prototypes (Eq. 7): the few patterns of attention that normal rows share.

Shape
-----
association  (n_rows, n_features)
prototypes   (n_prototypes, n_features)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ptad.paper.layers import normal


class AssociationPrototypes(nn.Module):
    """Squared distance from each association vector to each prototype."""

    def __init__(self, generator: torch.Generator, n_prototypes: int, n_features: int) -> None:
        super().__init__()
        self.prototypes = normal(generator, (n_prototypes, n_features))

    def forward(self, association: Tensor) -> Tensor:
        """Return (n_rows, n_prototypes)."""
        return (association.unsqueeze(1) - self.prototypes).square().sum(dim=-1)
