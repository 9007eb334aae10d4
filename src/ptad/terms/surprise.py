"""What the terms for missing values and for unseen categories share: surprise at an event in a column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, namespace, on_device
from ptad.reference import Batch
from ptad.tables.features import Features
from ptad.terms.base import History, Reason, TermValues


class Surprise:
    """Sum over columns of minus the logarithm of the chance that the event happens there."""

    standardised: ClassVar[bool] = True
    chunked: ClassVar[bool] = True
    batch_size: int | None = None
    reason: ClassVar[Reason]

    def __init__(self, chance: NDArray[np.float64], features: Features, settings: Any, device: str) -> None:
        self.settings = settings
        self.features = features
        self.history: History = []
        self._surprise = on_device(-np.log(chance), device)  # (n_columns,)

    def happened(self, rows: Array) -> Array:
        """Return (n, n_columns): whether the event happened."""
        raise NotImplementedError

    def value(self, batch: Batch) -> Array:
        """Return (n,): the surprise added up over the columns in which the event happened."""
        return (self.happened(batch.rows) * self._surprise).sum(axis=1)

    def explain(self, batch: Batch) -> TermValues:
        """Return the values and the columns in which the event happened."""
        xp: Any = namespace(batch.rows)
        cells = self.happened(batch.rows) * self._surprise
        total = cells.sum(axis=1)
        reason = xp.zeros_like(cells, dtype=xp.int64) + int(self.reason)
        return TermValues(
            value=total,
            shares=cells / xp.where(total > 0.0, total, 1.0)[:, None],
            reason=reason,
            partner=xp.zeros_like(reason) - 1,
        )

    def transform(self, batch: Batch) -> None:
        """Return None: an event is no picture of a row."""

    def transform_names(self) -> list[str]:
        return []
