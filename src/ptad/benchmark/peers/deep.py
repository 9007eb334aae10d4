"""The base class of the deep peers: layers, training settings, training, scoring in chunks.

All random numbers come from local generators. ``torch.nn.Linear`` would draw its weights from the global one; the
layers here draw the same distribution from a given generator. The training loop is that of PTAD's own network.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer
from ptad.devices import resolve_device
from ptad.paper.layers import Noise, uniform
from ptad.paper.loop import Loop
from ptad.paper.optimizer import Optimizer, learning_rates
from ptad.settings import Settings, setting

#: ``(batch, generator) -> scalar``; the generator is for noise inside the loss.
LossFunction = Callable[[Tensor, torch.Generator], Tensor]

# Fewer steps are not captured as a CUDA graph: capturing costs about as much as so many steps.
_MIN_STEPS_FOR_GRAPH = 50


@dataclass(frozen=True)
class TrainingSettings(Settings):
    """How long and how fast to train."""

    name: ClassVar[str] = "training"

    epochs: int = setting(100, low=0, high=1_000_000_000)  # 0 leaves the network at its random start
    steps: int | None = setting(None, low=0, high=100_000_000, optional=True)  # in place of epochs
    #: All rows if there are fewer. The last batch of an epoch is filled up with its first rows: a captured step has one
    #: shape.
    batch_size: int = setting(64, low=1, high=1_000_000)
    learning_rate: float = setting(1e-3, low=0.0, high=1e3, open_low=True)
    weight_decay: float = setting(0.0, low=0.0, high=1e3)
    decay: float = setting(1.0, low=0.0, high=10.0, open_low=True)  # of the rate of Adam, per epoch
    #: A run that reaches it is marked as capped: 140,000 rows are not trained a hundred times longer than 1,400.
    max_steps: int = setting(10_000, low=1, high=100_000_000)
    graph: bool = setting(True)  # capture the step as a CUDA graph; ignored on the CPU
    log_every: int = setting(50, low=1, high=1_000_000)  # steps between two entries of the history

    def params(self) -> dict[str, Any]:
        """Return the settings that affect the result."""
        return {k: v for k, v in self.to_json().items() if k not in ("graph", "log_every")}


def train(
    module: nn.Module,
    loss_function: LossFunction,
    rows: Tensor,
    settings: TrainingSettings,
    seed: int,
    optimizer: str = "adam",
) -> tuple[list[dict[str, float]], str]:
    """Minimise ``loss_function`` over minibatches of ``rows``; the module, on the same device, is changed in place.

    The loss must not synchronise with the host. The optimizer is "adam", with the settings' decay of the rate, or
    "lamb": with Lookahead, gradients clamped to 1 and a cosine schedule of the rate. Return the losses, and the reason
    if training was cut short.
    """
    device, batch_size = rows.device, min(settings.batch_size, len(rows))
    per_epoch = math.ceil(len(rows) / batch_size)
    planned = settings.epochs * per_epoch if settings.steps is None else settings.steps
    n_steps = min(planned, settings.max_steps)
    if n_steps == 0:
        return [], ""
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
    if settings.graph and device.type == "cuda" and n_steps >= _MIN_STEPS_FOR_GRAPH:
        loop.capture()
    history = []
    for first in range(0, n_steps, settings.log_every):
        n = min(settings.log_every, n_steps - first)
        history.append({"step": float(first + n), **loop.run(first, n, fill)})
    module.eval()
    return history, f"trained {n_steps} of {planned} steps" if n_steps < planned else ""


@dataclass(eq=False, kw_only=True)
class DeepPeer(Peer):
    """Base class of the deep peers. A child implements the network, the loss and the score."""

    training: TrainingSettings | Mapping[str, Any] | None = None  # a mapping changes some of the published settings

    #: The published settings; 100 epochs, batches of 64 and a rate of 0.001 for most methods.
    default_training: ClassVar[TrainingSettings] = TrainingSettings()
    #: "adam", or "lamb" as in NPT's training.
    optimizer: ClassVar[str] = "adam"
    #: Rows scored at once, which limits the memory.
    chunk_rows = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.training or {}
        self.schedule = given if isinstance(given, TrainingSettings) else self.default_training.replace(given)

    def params(self) -> dict[str, Any]:
        """Return every setting that affects the scores."""
        params = super().params()
        del params["training"]
        return {**params, **self.schedule.params()}

    def _fit(self, rows: Matrix) -> None:
        self._device = torch.device(resolve_device(self.device))
        self._noise = Noise()  # of dropout layers; none outside training
        # The weights are drawn on the CPU, so that the start is the same on every device.
        generator = torch.Generator().manual_seed(self.random_state)
        self._module = self._build(rows.shape[1], generator).to(self._device)
        self.n_parameters_ = sum(p.numel() for p in self._module.parameters() if p.requires_grad)
        tensor = torch.as_tensor(rows, dtype=torch.float32, device=self._device)
        self._module.eval()
        with torch.no_grad():
            self._before_training(tensor)
        settings, reason = self._training_for(*rows.shape)
        self.history_, capped = train(
            self._module, self._noisy_loss, tensor, settings, self.random_state, self.optimizer
        )
        self._noise.generator = None
        self._add_cap(reason)
        self._add_cap(capped)
        self._module.eval()
        with torch.no_grad():
            self._after_training(tensor)

    def _noisy_loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        self._noise.generator = generator
        return self._loss(batch, generator)

    def _score(self, rows: Matrix) -> Matrix:
        with torch.no_grad():
            chunks = torch.as_tensor(rows, dtype=torch.float32).split(self.chunk_rows)
            scores = [self._score_batch(chunk.to(self._device)).double().cpu() for chunk in chunks]
        return np.asarray(torch.cat(scores))

    def _add_cap(self, reason: str) -> None:
        """Note a reason why less was done than published, once."""
        if reason and reason not in self.capped_:
            self.capped_ = f"{self.capped_}; {reason}" if self.capped_ else reason

    @abstractmethod
    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        """Return the untrained network."""

    def _before_training(self, rows: Tensor) -> None:
        """Called before the first step."""

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of one minibatch, by default the mean score."""
        return self._score_batch(batch).mean()

    def _after_training(self, rows: Tensor) -> None:
        """Called after the last step; statistics of the training rows are computed here, never in scoring."""

    @abstractmethod
    def _score_batch(self, batch: Tensor) -> Tensor:
        """Return the anomaly score of every row."""

    def _training_for(self, n_rows: int, n_features: int) -> tuple[TrainingSettings, str]:
        """Return the settings for a table of this shape, and the reason if they had to be reduced."""
        return self.schedule, ""


def linear(n_in: int, n_out: int, generator: torch.Generator, bias: bool = False) -> nn.Linear:
    """Return a linear layer with PyTorch's usual uniform(-1/sqrt(n_in), 1/sqrt(n_in)) weights."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    bound = 1.0 / math.sqrt(max(n_in, 1))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if bias:
            layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def stacked_weight(n_stack: int, n_in: int, n_out: int, generator: torch.Generator) -> nn.Parameter:
    """Return weights of ``n_stack`` independent linear layers without bias, shape (n_stack, n_in, n_out)."""
    return uniform(generator, (n_stack, n_in, n_out), 1.0 / math.sqrt(max(n_in, 1)))


def mlp(widths: Sequence[int], generator: torch.Generator, activation: nn.Module, bias: bool = False) -> nn.Sequential:
    """Return linear layers of the given widths with ``activation`` between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [linear(n_in, n_out, generator, bias), activation]
    return nn.Sequential(*layers[:-1])
