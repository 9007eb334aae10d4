"""The network's own view of encoded rows: one unit for all columns, and passes that each hide some of them.

Shape
-----
x          (..., n_features), encoded rows; NaN = missing
pass_of    (n_members, n_features), number of the pass in which each member does not see the column

Judged on a cell that it sees, a network that has learned to copy finds every cell normal. With ``n_passes``, every
column is hidden in exactly one pass and its error is taken from there; the encoded columns of one original column are
hidden together, since they tell each other's value. Pass s also uses one P-space mask, that of basis vector s mod K.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ptad.model import Output, Reference


@dataclass
class Space:
    """Centre and unit of every column, and who is hidden when."""

    centre: Tensor  # (d,)
    unit: Tensor  # (d,), the factor into the network's units
    pass_of: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.centre) * self.unit

    def back(self, z: Tensor) -> Tensor:
        """Return encoded rows from the network's."""
        return z / self.unit + self.centre

    def to(self, device: torch.device, dtype: torch.dtype) -> Space:
        return Space(
            self.centre.to(device, dtype),
            self.unit.to(device, dtype),
            None if self.pass_of is None else self.pass_of.to(device),
        )

    def of(self, members: list[int]) -> Space:
        """Return the view of some members."""
        return Space(self.centre, self.unit, None if self.pass_of is None else self.pass_of[members])

    @cached_property
    def n_passes(self) -> int:
        return 1 if self.pass_of is None else int(self.pass_of.max()) + 1

    def hide(self, z: Tensor, n_branches: int) -> tuple[Tensor, Tensor | None]:
        """Return (n_members, n_passes * n_rows, d) with hidden cells as NaN, and the P-space mask of each row."""
        if self.pass_of is None:
            return z, None
        passes = torch.arange(self.n_passes, device=z.device)
        hidden = self.pass_of.unsqueeze(1) == passes.view(1, -1, 1)
        repeated = z.unsqueeze(1).masked_fill(hidden.unsqueeze(2), torch.nan).flatten(1, 2)
        branch = (passes % n_branches).unsqueeze(1).expand(-1, z.shape[1]).flatten().expand(len(z), -1)
        return repeated, branch

    def gather(self, output: Output) -> Output:
        """Return one output per row: each cell as seen when it was hidden, everything else averaged over the passes."""
        if self.pass_of is None:
            return output
        n_passes = self.n_passes

        def mean(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.unflatten(1, (n_passes, -1)).mean(dim=1)

        made = output.reconstructions.unflatten(2, (n_passes, -1))
        index = self.pass_of.view(len(self.pass_of), 1, 1, 1, -1)
        masks = output.projection_masks
        latent, basis_squared = mean(output.latent), mean(output.basis_squared)
        assert latent is not None and basis_squared is not None
        return Output(
            reconstructions=made.gather(2, index.expand(-1, made.shape[1], 1, made.shape[3], -1)).squeeze(2),
            latent=latent,
            data_mask=mean(output.data_mask),
            projection_masks=None if masks is None else masks.unflatten(2, (n_passes, -1)).mean(dim=2),
            basis_squared=basis_squared,
            association=mean(output.association),
            prototype_squared=mean(output.prototype_squared),
            reference=Reference(None, None),
        )
