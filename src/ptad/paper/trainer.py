"""Training of the paper's network: batches, the early stop, checkpoints and groups of workers around the shared loop.

The loss is looked at only at intervals. State lives on the device: the best held-out loss and the parameters that
reached it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ptad.errors import TrainingError
from ptad.paper.checkpoint import Checkpoint
from ptad.paper.loop import Loop
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
        settings = self.settings
        optimizer = Optimizer(
            self.network.parameters(),
            settings.optimizer,
            settings.learning_rate,
            settings.weight_decay,
            clip=settings.gradient_clip,
        )
        epoch = math.ceil(n_train / self.batch_size)
        rates = learning_rates(settings.learning_rate, settings.n_steps, settings.warmup_epochs * epoch)
        self.loop = Loop(
            self.network,
            self._noisy_loss,
            PARTS,
            optimizer,
            torch.from_numpy(rates).to(self.device),
            self.generator,
            None if self.group is None else partial(average_gradients, optimizer.parameters, self.group),
        )
        self.rows = self.data.train if self.full_batch else self.data.train[: self.share].clone()
        self.best_loss = torch.full((), math.inf, device=self.device)
        self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.step_done = 0

    def run(self, progress: Progress | None = None, checkpoint: Checkpoint | None = None) -> History:
        """Train to the end or to the early stop, from the checkpoint if there is one."""
        settings = self.settings
        first_loss = self._probe()
        captured = self.device.type == "cuda" and self.group is None
        if captured:
            self.loop.capture()
        if checkpoint is not None:
            self._restore(checkpoint, captured=captured)
        started = time.perf_counter()
        while self.step_done < settings.n_steps and not self._exhausted():
            n = min(settings.interval, settings.n_steps - self.step_done)
            if self.group is not None:
                reseed(self.generator, self.group, self.seed, self.step_done)
            means = self.loop.run(self.step_done, n, None if self.full_batch else self._batches(n))
            self.step_done += n
            self._look(means, time.perf_counter() - started)
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

    def _noisy_loss(self) -> Tensor:
        self.network.noise.generator = self.generator
        parts = self._loss(self.rows)
        self.network.noise.generator = None
        return parts

    def _batches(self, n: int) -> Callable[[int], object]:
        """Draw the rows of the next n batches, with replacement, on the device; return what fills in one of them."""
        first, shape = self.step_done, (n, self.share)
        places = torch.randint(len(self.data.train), shape, generator=self.generator, device=self.device)
        batches = self.data.train[places]
        return lambda number: self.rows.copy_(batches[number - first])

    # looking at the loss --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _probe(self) -> float:
        """Return the loss on the same training rows every time, without noise."""
        return float(self._loss(self.data.train[: self.batch_size])[0])

    @torch.no_grad()
    def _look(self, means: dict[str, float], seconds: float) -> None:
        """Log the means of the interval; keep the parameters if the held-out loss is the best so far."""
        entry = {"step": float(self.step_done), **means, "seconds": seconds}
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
        for name, tensor in self.loop.optimizer.state().items():
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
        optimizer = self.loop.optimizer
        for parameter in optimizer.parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step(0)
        for parameter in optimizer.parameters:
            parameter.grad = None
