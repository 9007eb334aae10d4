"""The one training loop of all deep peers.

Rows, permutations and noise live on the device; nothing is read back to the host inside a step. On CUDA the whole step
(forward, backward, optimiser) is captured once as a graph and replayed, which is what makes nets of this size fast.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.layers import LocalDropout
from ptad.errors import TrainingError
from ptad.settings import Settings, setting

logger = logging.getLogger(__name__)

#: A loss of one minibatch. The generator is for noise inside the loss.
LossFunction = Callable[[Tensor, torch.Generator], Tensor]

# A captured graph must not see the first calls of lazily made buffers and autotuned kernels.
_WARM_UP_STEPS = 3
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
        Of Adam (L2 form).
    decay : float
        Factor on the learning rate after each epoch.
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


class StepRule(Protocol):
    """How parameters move: Adam below, or the optimiser of :mod:`ptad.paper`.

    Attributes
    ----------
    rate : Tensor
        The learning rate, one number on the device, so that a captured step can follow it.
    cycle : int
        Number of distinct kinds of step in a row; a graph is captured for each kind.
    """

    rate: Tensor

    @property
    def cycle(self) -> int:
        """Number of distinct kinds of step."""
        ...

    def step(self, position: int) -> None:
        """Move the parameters and forget the gradients."""
        ...


class Adam:
    """Adam with the L2 form of weight decay."""

    cycle = 1

    def __init__(self, parameters: Sequence[nn.Parameter], settings: TrainingSettings, device: torch.device) -> None:
        self.rate = torch.tensor(settings.learning_rate, device=device)
        self._inner = torch.optim.Adam(
            parameters,
            lr=self.rate,
            weight_decay=settings.weight_decay,
            fused=True,
            capturable=device.type == "cuda",
        )

    def step(self, position: int) -> None:
        """Move the parameters and forget the gradients."""
        self._inner.step()
        self._inner.zero_grad(set_to_none=False)


#: ``(parameters, n_steps, device) -> (rule, learning rate of every step or None)``
RuleFactory = Callable[[list[nn.Parameter], int, torch.device], tuple[StepRule, Sequence[float] | None]]


def train(
    module: nn.Module,
    loss_function: LossFunction,
    rows: Tensor,
    settings: TrainingSettings,
    seed: int,
    rule_factory: RuleFactory | None = None,
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
    rule_factory : callable, optional
        Makes another step rule and its own learning rates; Adam with the settings' decay when absent.

    Returns
    -------
    TrainingRecord
        History of mean losses, steps done, and whether ``max_steps`` cut it.
    """
    device = rows.device
    batch_size = min(settings.batch_size, rows.shape[0])
    per_epoch = math.ceil(rows.shape[0] / batch_size)
    wanted = settings.epochs * per_epoch if settings.steps is None else settings.steps
    n_steps = min(wanted, settings.max_steps)
    if n_steps == 0:
        return TrainingRecord([], 0, "")
    order_generator = torch.Generator(device=device).manual_seed(seed)
    noise_generator = torch.Generator(device=device).manual_seed(seed + 1)
    for part in module.modules():
        if isinstance(part, LocalDropout):
            part.generator = noise_generator
    rule: StepRule
    rates: Sequence[float] | None
    if rule_factory is None:
        rule, rates = Adam(list(module.parameters()), settings, device), None
    else:
        rule, rates = rule_factory(list(module.parameters()), n_steps, device)
    use_graph = settings.graph and device.type == "cuda" and n_steps >= _GRAPH_WORTH
    batch = rows.new_empty((batch_size, rows.shape[1]))
    step = _Step(loss_function, rule, batch, noise_generator, use_graph)

    module.train()
    history: list[dict[str, float]] = []
    order = torch.empty(0, dtype=torch.long, device=device)
    since = 0
    for done in range(n_steps):
        position = done % per_epoch
        if position == 0:
            order = torch.randperm(rows.shape[0], generator=order_generator, device=device)
            order = torch.cat([order, order[:batch_size]])
            if rates is None and settings.decay != 1.0:
                rule.rate.fill_(settings.learning_rate * settings.decay ** (done // per_epoch))
        if rates is not None:
            rule.rate.fill_(float(rates[done]))
        torch.index_select(rows, 0, order[position * batch_size : (position + 1) * batch_size], out=batch)
        step(done)
        since += 1
        if since == settings.log_every or done == n_steps - 1:
            history.append({"step": float(done + 1), "loss": step.mean_loss(since)})
            since = 0
    module.eval()
    if not all(math.isfinite(entry["loss"]) for entry in history):
        raise TrainingError("The training loss is not finite. Lower the learning rate or scale the columns.")
    logger.debug("trained %d steps, loss %.4g -> %.4g", n_steps, history[0]["loss"], history[-1]["loss"])
    capped = f"trained {n_steps} of {wanted} steps" if n_steps < wanted else ""
    return TrainingRecord(history, n_steps, capped)


class _Step:
    """One optimisation step on a fixed batch buffer, run eagerly or as captured graphs, one per kind of step."""

    def __init__(
        self,
        loss_function: LossFunction,
        rule: StepRule,
        batch: Tensor,
        generator: torch.Generator,
        use_graph: bool,
    ) -> None:
        self._batch = batch
        self._loss_function = loss_function
        self._rule = rule
        self._generator = generator
        self._use_graph = use_graph
        self._total = torch.zeros((), device=batch.device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        # The graphs run one after the other and keep nothing: they can share their memory.
        self._pool = torch.cuda.graph_pool_handle() if use_graph else None

    def __call__(self, done: int) -> None:
        kind = done % self._rule.cycle
        if not self._use_graph:
            self._eager(kind)
        elif done < max(_WARM_UP_STEPS, self._rule.cycle):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._eager(kind)
            torch.cuda.current_stream().wait_stream(stream)
        else:
            if kind not in self._graphs:
                self._graphs[kind] = self._capture(kind)
            self._graphs[kind].replay()

    def mean_loss(self, n_steps: int) -> float:
        """Mean loss since the last call; the only place that waits for the device."""
        value = float(self._total) / n_steps
        self._total.zero_()
        return value

    def _capture(self, kind: int) -> torch.cuda.CUDAGraph:
        """Record the step; the recording itself changes no parameter."""
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        # Other threads may use CUDA meanwhile; only this thread's unsafe calls are errors.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            self._eager(kind)
        return graph

    def _eager(self, kind: int) -> None:
        loss = self._loss_function(self._batch, self._generator)
        loss.backward()
        self._rule.step(kind)
        self._total.add_(loss.detach())
