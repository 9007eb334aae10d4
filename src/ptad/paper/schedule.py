"""The learning rate: a linear warm-up, then a cosine to zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def learning_rates(peak: float, n_steps: int, warmup_steps: int) -> NDArray[np.float32]:
    """Return the rate of every step, (n_steps,).

    NOTE[PAPER-11] The text's warm-up "gradually decreases" the rate; a warm-up increases it. It takes at most half of
    the steps, so that small tables, whose epochs are single steps, still reach the cosine.
    """
    warmup = min(warmup_steps, n_steps // 2)
    rising = (np.arange(warmup) + 1) / (warmup + 1)
    falling = 0.5 * (1.0 + np.cos(np.pi * np.arange(n_steps - warmup) / (n_steps - warmup)))
    return (peak * np.concatenate([rising, falling])).astype(np.float32)
