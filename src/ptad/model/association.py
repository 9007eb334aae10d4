"""Association prototypes (Eq. 7): the few patterns of attention that normal rows share.

Shape
-----
association  (n_members, n_rows, n_features)
prototypes   (n_members, n_prototypes, n_features)
"""

from __future__ import annotations

from torch import Tensor, nn

from ptad.model.layers import Generators, normal


class AssociationPrototypes(nn.Module):
    """Squared distance from each association vector to each prototype."""

    def __init__(self, generators: Generators, n_prototypes: int, n_features: int) -> None:
        super().__init__()
        self.prototypes = normal(generators, (n_prototypes, n_features))

    def forward(self, association: Tensor) -> Tensor:
        """Return (n_members, n_rows, n_prototypes)."""
        return (association.unsqueeze(2) - self.prototypes.unsqueeze(1)).square().sum(dim=-1)
