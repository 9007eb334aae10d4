"""Data parallelism: several workers train one network, each on batches of its own, with averaged gradients.

The batch of a step is divided among the workers; rows attend to those of the same worker. Workers start from the same
parameters (the same seed) and take the same averaged steps; they differ only in the rows and the noise that they draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch


class Parallel(Protocol):
    """A group of workers, as seen by the training loop of one of them."""

    rank: int
    size: int

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace the tensors by their mean over all workers."""


_current: ContextVar[Parallel | None] = ContextVar("ptad_parallel", default=None)


def current_parallel() -> Parallel | None:
    """Return the group of workers that fits in this context train with, or None."""
    return _current.get()


@contextmanager
def data_parallel(group: Parallel) -> Iterator[None]:
    """Make all fits inside train together with the other workers of the group."""
    token = _current.set(group)
    try:
        yield
    finally:
        _current.reset(token)


def share_of_batch(batch_size: int, group: Parallel | None) -> int:
    """Rows of a batch that one worker draws; at least 16, below which attention between rows has nothing to see."""
    return batch_size if group is None else min(batch_size, max(16, -(-batch_size // group.size)))


def reseed(generator: torch.Generator, group: Parallel, seed: int, step: int) -> None:
    """Seed the generator by worker and step, so that workers differ and a resumed run draws the same."""
    mixed = torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(seed + 1)).item()
    generator.manual_seed((int(mixed) + step * 1_000_003 + group.rank * 7_919) % 2**63)
