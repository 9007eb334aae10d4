"""How the compared networks are trained: settings, batches, and the loop that PTAD's own network is trained with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ptad.paper.loop import Loop
from ptad.paper.optimizer import Optimizer, learning_rates
from ptad.settings import Settings, setting

#: A loss of one minibatch. The generator is for noise inside the loss.
LossFunction = Callable[[Tensor, torch.Generator], Tensor]

# Capturing a step costs about as much as this many plain ones.
_GRAPH_WORTH = 50


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """How long and how fast to train.

    Attributes
    ----------
    epochs : int
        Passes over the training rows; 0 leaves the random start as it is.
    steps : int, optional
        Steps whatever the number of rows, in place of ``epochs``.
    batch_size : int
        Rows per step; all rows where there are fewer. The last batch of an epoch is filled up with its first rows:
        a captured step has one shape.
    learning_rate, weight_decay : float
        Of the optimiser.
    decay : float
        Factor on the learning rate of Adam after each epoch.
    max_steps : int
        Ceiling on the steps, so that a table of 140,000 rows does not train a hundred times longer than one of 1,400.
        A run that meets it is marked as capped.
    graph : bool
        Capture the step as a CUDA graph; without meaning on the CPU.
    log_every : int
        Steps between two entries of the history.
    """

    name: ClassVar[str] = "training"

    epochs: int = setting(100, low=0, high=1_000_000_000)
    steps: int | None = setting(None, low=0, high=100_000_000, optional=True)
    batch_size: int = setting(64, low=1, high=1_000_000)
    learning_rate: float = setting(1e-3, low=0.0, high=1e3, open_low=True)
    weight_decay: float = setting(0.0, low=0.0, high=1e3)
    decay: float = setting(1.0, low=0.0, high=10.0, open_low=True)
    max_steps: int = setting(10_000, low=1, high=100_000_000)
    graph: bool = setting(True)
    log_every: int = setting(50, low=1, high=1_000_000)

    def params(self) -> dict[str, Any]:
        """The settings that decide the result; speed settings left out."""
        return {k: v for k, v in self.to_json().items() if k not in ("graph", "log_every")}


@dataclass(frozen=True)
class TrainingRecord:
    """What training did: the losses, the number of steps, and the reason if it was cut short."""

    history: list[dict[str, float]]
    steps: int
    capped: str


def train(
    module: nn.Module,
    loss_function: LossFunction,
    rows: Tensor,
    settings: TrainingSettings,
    seed: int,
    optimizer: str = "adam",
) -> TrainingRecord:
    """Minimise ``loss_function`` over minibatches of ``rows``; the module is changed in place.

    Parameters
    ----------
    module : Module
        Already on the device of ``rows``.
    loss_function : callable
        ``(batch, generator) -> scalar``; must not synchronise with the host.
    rows : Tensor of shape (n_rows, n_features)
        The training rows on the device.
    settings : TrainingSettings
        How long and how fast.
    seed : int
        Of the permutations and the noise.
    optimizer : {"adam", "lamb"}
        Adam with the settings' decay of the rate; or LAMB with Lookahead, gradients clamped to 1, cosine from the
        start.

    Returns
    -------
    TrainingRecord
        History of mean losses, steps done, and whether ``max_steps`` cut it.
    """
    device, batch_size = rows.device, min(settings.batch_size, len(rows))
    per_epoch = math.ceil(len(rows) / batch_size)
    wanted = settings.epochs * per_epoch if settings.steps is None else settings.steps
    n_steps = min(wanted, settings.max_steps)
    if n_steps == 0:
        return TrainingRecord([], 0, "")
    rate = settings.learning_rate
    if optimizer == "lamb":
        rates = learning_rates(rate, n_steps, 0)
    else:
        rates = (rate * settings.decay ** (np.arange(n_steps) // per_epoch)).astype(np.float32)
    rule = Optimizer(
        module.parameters(), optimizer, rate, settings.weight_decay, clip=1.0 if optimizer == "lamb" else None
    )
    shuffling, noise = (torch.Generator(device=device).manual_seed(seed + place) for place in (0, 1))
    batch = rows[:batch_size].clone()
    order = torch.empty(0, dtype=torch.long, device=device)

    def fill(number: int) -> None:
        nonlocal order
        place = number % per_epoch
        if place == 0:
            order = torch.randperm(len(rows), generator=shuffling, device=device)
            order = torch.cat([order, order[:batch_size]])
        torch.index_select(rows, 0, order[place * batch_size : (place + 1) * batch_size], out=batch)

    loop = Loop(
        module,
        lambda: loss_function(batch, noise).reshape(1),
        ("loss",),
        rule,
        torch.from_numpy(rates).to(device),
        noise,
    )
    module.train()
    if settings.graph and device.type == "cuda" and n_steps >= _GRAPH_WORTH:
        loop.capture()
    history = []
    for first in range(0, n_steps, settings.log_every):
        n = min(settings.log_every, n_steps - first)
        history.append({"step": float(first + n), **loop.run(first, n, fill)})
    module.eval()
    return TrainingRecord(history, n_steps, f"trained {n_steps} of {wanted} steps" if n_steps < wanted else "")
