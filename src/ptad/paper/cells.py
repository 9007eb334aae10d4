"""What the network makes of a row, per column of the table."""

from __future__ import annotations

from dataclasses import dataclass

from ptad.arrays import Array


@dataclass
class Cells:
    """What plots and experiments look at; arrays of the same kind as the rows."""

    contributions: Array  # (n, n_columns), rows add up to the score
    missing: Array  # (n, n_columns), the part of it that comes from missing-value indicators
    masking_rate: Array  # (n, n_columns), share of the column's latent that the P-space masks hide
    data_mask: Array  # (n, n_columns), the soft mask
    nearest_basis: Array  # (n,), number of the matched basis vector, -1 where there are none
    nearest_prototype: Array  # (n,), number of the matched prototype, -1 where there are none
    expected: Array  # (n, n_features), in the units of the rows
