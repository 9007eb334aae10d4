"""ICL: a run of neighbouring columns should be recognisable from the rest of its row.

References
----------
Shenkar, Wolf. Anomaly detection for tabular data with internal contrastive learning. ICLR 2022.

Departures
----------
* The columns keep their order; the original tries several permutations on narrow tables and averages.
* A fixed number of epochs; the original stops at a training loss chosen by the size of the table.
* The compared library normalises the representations along the axis of the runs instead of each one to length 1.
  ``normalise="runs"`` (default) keeps that, since the published figures have it; ``"each"`` is the paper's text.
* The compared library averages an ensemble of several nets on small tables; here it is one net.
* All runs are negatives of one another. The limit of 1,000 negatives never binds: the rule for the length of a run
  leaves at most 401 runs, whatever the width.
* A table of two columns has runs of one column, since the complement must hold something.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.base import check_choice
from ptad.benchmark.peers.deep import DeepPeer, linear
from ptad.errors import DataError


@dataclass(eq=False, kw_only=True)
class Icl(DeepPeer):
    """Mean cross-entropy of matching every run of columns with its own complement."""

    chunk_rows = 256

    temperature: float = 0.01  # of the matching
    run_length: int | None = None  # columns per run; None: by the rule of :func:`run_length`
    normalise: str = "runs"  # along the axis of the runs, or "each" representation to length 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.normalise, ("runs", "each"), "normalise", self.name)

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        if n_features < 2:
            raise DataError("icl needs at least two columns: it predicts some from the others.")
        length = self.run_length or run_length(n_features)
        if not 1 <= length < n_features:
            raise DataError(f"icl cannot cut runs of {length} columns from {n_features} columns.")
        return _RunMatcher(n_features, length, generator)

    def _score_batch(self, batch: Tensor) -> Tensor:
        complements, runs = self._module(batch)
        return matching_loss(complements, runs, self.temperature, 1 if self.normalise == "runs" else 2)


def run_length(n_features: int) -> int:
    """Columns per run, by the width of the table."""
    if n_features <= 40:
        return min(2, n_features - 1)
    if n_features <= 160:
        return 10
    if n_features <= 240:
        return n_features - 150
    if n_features <= 480:
        return n_features - 200
    return n_features - 400


def run_indices(n_features: int, length: int) -> tuple[Tensor, Tensor]:
    """Column numbers of every run (runs, length) and of its complement (runs, n_features - length)."""
    starts = torch.arange(n_features - length + 1).unsqueeze(1)
    inside = starts + torch.arange(length)
    rest = torch.arange(n_features - length)
    # Columns before the run keep their number, those after it skip the run.
    outside = rest + length * (rest >= starts)
    return inside, outside


class _RunMatcher(nn.Module):
    """Encode every run and every complement to 128 numbers."""

    inside: Tensor
    outside: Tensor

    def __init__(self, n_features: int, length: int, generator: torch.Generator) -> None:
        super().__init__()
        inside, outside = run_indices(n_features, length)
        self.register_buffer("inside", inside)
        self.register_buffer("outside", outside)
        n_runs = inside.shape[0]
        self.complement = _encoder(n_features - length, (100, 50), n_runs, nn.Tanh(), generator)
        self.run = _encoder(length, (50, 25), n_runs, nn.LeakyReLU(), generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) -> complements and runs, both (n, runs, 128)."""
        return self.complement(x[:, self.outside]), self.run(x[:, self.inside])


def _encoder(
    n_in: int, hidden: tuple[int, int], n_runs: int, first: nn.Module, generator: torch.Generator
) -> nn.Sequential:
    # Batch norm over the axis of runs, after the activation; its statistics are frozen after training, so that scoring
    # is row by row.
    layers: list[nn.Module] = []
    for position, (before, after) in enumerate(itertools.pairwise((n_in, *hidden, 128))):
        activation = first if position == 0 else nn.LeakyReLU()
        layers += [linear(before, after, generator), activation, nn.BatchNorm1d(n_runs, affine=False)]
    return nn.Sequential(*layers)


def matching_loss(complements: Tensor, runs: Tensor, temperature: float, axis: int = 2) -> Tensor:
    """Mean over runs of the cross-entropy that a run is matched with its own complement; -> (n,)."""
    left = nn.functional.normalize(complements, dim=axis)
    right = nn.functional.normalize(runs, dim=axis)
    logits = left @ right.transpose(1, 2) / temperature
    return -torch.diagonal(torch.log_softmax(logits, dim=-1), dim1=1, dim2=2).mean(1)
