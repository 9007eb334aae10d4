"""The training loop: fixed-shape steps, one CUDA graph per step on a GPU, a look at the loss only at intervals.

Nothing inside an interval reads a value back to the host. State lives on the device: the sums of the loss parts, the
best held-out loss and the parameters that reached it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ptad.errors import TrainingError
from ptad.paper.checkpoint import Checkpoint
from ptad.paper.loss import PARTS, loss_parts
from ptad.paper.network import Network
from ptad.paper.optimizer import Optimizer, learning_rates
from ptad.paper.parallel import average_gradients, current_parallel, reseed, share_of_batch
from ptad.paper.settings import NetworkSettings
from ptad.terms.base import History, Progress

logger = logging.getLogger("ptad")


@dataclass
class Data:
    """Device tensors of one run."""

    x: Tensor  # (n, d) encoded rows, NaN = missing
    train: Tensor  # (n_train,) numbers of the training rows
    validation: Tensor | None = None  # (n_validation,) numbers of the rows that stop training


@dataclass
class Trainer:
    """Trains a network in place."""

    network: Network
    data: Data
    settings: NetworkSettings
    generator: torch.Generator
    batch_size: int
    must_improve: bool = True  # a network that was trained before may have nothing left to gain
    history: History = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device = self.data.x.device
        self.mixed = self.settings.mixed_precision and self.device.type == "cuda"
        n_train = len(self.data.train)
        self.group = current_parallel()
        self.seed = self.generator.initial_seed()
        self.share = share_of_batch(self.batch_size, self.group)  # rows of a batch that fall to this worker
        self.full_batch = n_train <= self.share
        self.optimizer = Optimizer(self.network.parameters(), self.settings, self.device)
        epoch = math.ceil(n_train / self.batch_size)
        rates = learning_rates(self.settings.learning_rate, self.settings.n_steps, self.settings.warmup_epochs * epoch)
        self.rates = torch.from_numpy(rates).to(self.device)
        self.sums = torch.zeros(len(PARTS), device=self.device)
        self.rows = self.data.train if self.full_batch else self.data.train[: self.share].clone()
        self.best_loss = torch.full((), math.inf, device=self.device)
        self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.step_done = 0

    def run(self, progress: Progress | None = None, checkpoint: Checkpoint | None = None) -> History:
        """Train to the end or to the early stop, from the checkpoint if there is one."""
        settings = self.settings
        first_loss = self._probe()
        captured = self.device.type == "cuda" and self.group is None
        steps = self._capture() if captured else [self._step] * self.optimizer.cycle
        if checkpoint is not None:
            self._restore(checkpoint, captured=captured)
        started = time.perf_counter()
        while self.step_done < settings.n_steps and not self._exhausted():
            n = min(settings.interval, settings.n_steps - self.step_done)
            if self.group is not None:
                reseed(self.generator, self.group, self.seed, self.step_done)
            batches = self._draw(n)
            self.sums.zero_()
            for i in range(n):
                if not self.full_batch:
                    self.rows.copy_(batches[i])
                self.optimizer.rate.copy_(self.rates[self.step_done])
                position = self.step_done % self.optimizer.cycle
                steps[position](position)
                self.step_done += 1
            self._look(n, time.perf_counter() - started)
            if checkpoint is not None and (self.group is None or self.group.rank == 0):
                checkpoint.save(*self._state())
            if progress is not None:
                progress(self.step_done, settings.n_steps, self.history[-1])
        if self.data.validation is not None and settings.patience is not None:
            self.network.load_state_dict(self.best)
        if not (last_loss := self._probe()) < first_loss and self.must_improve:
            raise TrainingError(
                f"The network did not learn: its loss was {first_loss:.6g} before and {last_loss:.6g} after training. "
                "Try another learning_rate, or more n_steps."
            )
        return self.history

    # one step -----------------------------------------------------------------------------------------------------

    def _loss(self, rows: Tensor) -> Tensor:
        x = self.data.x[rows]
        with torch.autocast(self.device.type, torch.bfloat16) if self.mixed else contextlib.nullcontext():
            output = self.network(x)
        return loss_parts(self.network, output, x)

    def _step(self, position: int) -> None:
        self.network.noise.generator = self.generator
        parts = self._loss(self.rows)
        parts[0].backward()
        if self.group is not None:
            average_gradients(self.optimizer.parameters, self.group)
        self.optimizer.step(position)
        self.sums.add_(parts.detach())
        self.network.noise.generator = None

    def _capture(self) -> Sequence[Callable[[int], None]]:
        """Capture every kind of step as a CUDA graph; the warm-up that capturing needs leaves no trace."""
        saved = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        seed = self.generator.get_state()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for position in range(self.optimizer.cycle):
                self._step(position)
        torch.cuda.current_stream().wait_stream(side)
        graphs: list[torch.cuda.CUDAGraph] = []
        kinds = {0, self.optimizer.cycle - 1}  # all steps of a cycle but the last are alike
        for position in sorted(kinds):
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, pool=graphs[0].pool() if graphs else None):
                self._step(position)
            graphs.append(graph)
        self.network.load_state_dict(saved)
        self.optimizer.reset()
        self.generator.set_state(seed)
        return [partial(_replay, graphs[0])] * (self.optimizer.cycle - 1) + [partial(_replay, graphs[-1])]

    def _draw(self, n: int) -> Tensor:
        """Return the row numbers of the next n batches, (n, batch); drawn with replacement, on the device."""
        if self.full_batch:
            return self.data.train[:0]
        shape = (n, self.share)
        return self.data.train[torch.randint(len(self.data.train), shape, generator=self.generator, device=self.device)]

    # looking at the loss --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _probe(self) -> float:
        """Return the loss on the same training rows every time, without noise."""
        return float(self._loss(self.data.train[: self.batch_size])[0])

    @torch.no_grad()
    def _look(self, n: int, seconds: float) -> None:
        """Log the mean of the interval; keep the parameters if the held-out loss is the best so far."""
        means = (self.sums / n).tolist()
        entry = {"step": float(self.step_done), **dict(zip(PARTS, means, strict=True)), "seconds": seconds}
        if not all(map(math.isfinite, means)):
            raise TrainingError(
                f"The loss became non-finite at step {self.step_done} ({entry}). Try a smaller learning_rate."
            )
        if self.data.validation is not None:
            held_out = self._loss(self.data.validation)[1]
            better = held_out < self.best_loss
            self.best_loss = torch.minimum(self.best_loss, held_out)
            for name, tensor in self.network.state_dict().items():
                self.best[name].copy_(torch.where(better, tensor, self.best[name]))
            entry["held_out"] = float(held_out)
        self.history.append(entry)

    def _exhausted(self) -> bool:
        """Whether the held-out loss has not improved for ``patience`` intervals."""
        if self.settings.patience is None or self.data.validation is None or not self.history:
            return False
        losses = [entry["held_out"] for entry in self.history]
        return len(losses) - 1 - losses.index(min(losses)) >= self.settings.patience

    # checkpoint -----------------------------------------------------------------------------------------------------

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in self.network.state_dict().items():
            yield f"network.{name}", tensor
            yield f"best.{name}", self.best[name]
        for name, tensor in self.optimizer.state().items():
            yield f"optimizer.{name}", tensor

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = dict(self._tensors())
        tensors["generator"] = self.generator.get_state()
        tensors["best_loss"] = self.best_loss
        return tensors, {"step": self.step_done, "history": self.history, "batch_size": self.batch_size}

    def _restore(self, checkpoint: Checkpoint, *, captured: bool) -> None:
        found = checkpoint.load()
        if found is None:
            return
        saved, info = found
        if not captured:  # a captured step has made its moments, at the addresses that its graph knows
            self._create_moments()
        for name, tensor in self._tensors():
            if name in saved:  # a parameter without a gradient has no moments
                tensor.copy_(saved[name])
        self.generator.set_state(saved["generator"])
        self.best_loss.copy_(saved["best_loss"])
        self.step_done, self.history = info["step"], info["history"]
        logger.info("resuming at step %d of %d", self.step_done, self.settings.n_steps)

    def _create_moments(self) -> None:
        """Optimisers make their moments in the first step; take one that is undone at once by the restored values."""
        for parameter in self.optimizer.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step(0)
        for parameter in self.optimizer.parameters:
            parameter.grad = None


def _replay(graph: torch.cuda.CUDAGraph, _: int) -> None:
    graph.replay()
