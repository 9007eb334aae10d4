"""Training of one network: batches, the early stop, checkpoints and groups of workers around the shared loop.

The loss is read only once per interval. State stays on the device: the best validation loss and the parameters that
reached it. When memory runs out, training starts again with half the batch.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ptad.errors import TrainingError
from ptad.paper.checkpoint import Checkpoint
from ptad.paper.loop import Loop
from ptad.paper.loss import LOSS_PARTS, loss_parts
from ptad.paper.network import Network, context_rows
from ptad.paper.optimizer import Optimizer, learning_rates
from ptad.paper.parallel import current_parallel, reseed, share_of_batch
from ptad.paper.settings import NetworkSettings
from ptad.terms.base import History, StepProgress

logger = logging.getLogger("ptad")

VALIDATION_SHARE, MAX_VALIDATION_ROWS = 0.1, 512
MIN_BATCH = 8
FILE = "network.safetensors"


def train_network(
    x: Tensor,
    settings: NetworkSettings,
    seed: int,
    *,
    progress: StepProgress | None = None,
    checkpoint: Path | None = None,
    start: Network | None = None,
) -> tuple[Network, History]:
    """Train a network on encoded rows (n_rows, n_encoded); the same seed gives the same network on the same machine.

    ``progress`` is called at every interval. An interrupted training on the same rows resumes from the folder
    ``checkpoint``. With a network ``start`` a copy of it is trained further.
    """
    data = split(x, settings, seed)
    file = None if checkpoint is None else Checkpoint(checkpoint / FILE, fingerprint(x, settings, seed, start))
    batch_size = context_rows(settings.batch_size, x.shape[1])
    if file is not None and (saved := file.load()) is not None:
        batch_size = saved[1]["batch_size"]
    while True:
        if start is None:
            network = Network(torch.Generator().manual_seed(seed), x.shape[1], settings).to(x.device)
        else:
            network = copy.deepcopy(start).float().requires_grad_(True)
            network.settings = settings
        generator = torch.Generator(device=x.device).manual_seed(seed)
        try:
            trainer = Trainer(network, data, settings, generator, batch_size, must_improve=start is None)
            return network, trainer.run(progress, file)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            out_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
            if isinstance(error, TrainingError) or not (out_of_memory or "can't allocate memory" in str(error)):
                raise
            if batch_size <= MIN_BATCH:
                raise TrainingError(f"Out of memory even with batches of {batch_size} rows: {error}") from error
        batch_size //= 2
        if file is not None:
            file.path.unlink(missing_ok=True)  # it was written with the larger batch
        logger.warning("out of memory: training again with batches of %d rows", batch_size)
        if x.device.type == "cuda":
            torch.cuda.empty_cache()


def split(x: Tensor, settings: NetworkSettings, seed: int) -> Data:
    """Return the rows in random order; with the setting ``patience`` some of them are validation rows."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x))).to(x.device)
    if settings.patience is None or len(x) < 2:
        return Data(x, order)
    n_validation = min(max(1, int(VALIDATION_SHARE * len(x))), MAX_VALIDATION_ROWS)
    return Data(x, order[n_validation:], order[:n_validation])


def fingerprint(x: Tensor, settings: NetworkSettings, seed: int, start: Network | None) -> str:
    """Return a digest of all that a training depends on: settings, seed, device type, rows and start."""
    digest = hashlib.sha256(json.dumps([settings.to_json(), seed, x.device.type, list(x.shape)]).encode())
    digest.update(np.ascontiguousarray(x.cpu().numpy()).data)
    for tensor in () if start is None else start.state_dict().values():
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return digest.hexdigest()


@dataclass
class Data:
    """Device tensors of one run."""

    x: Tensor  # (n, d) encoded rows, NaN = missing
    train: Tensor  # (n_train,) places of the training rows
    validation: Tensor | None = None  # (n_validation,) places of the validation rows


@dataclass
class Trainer:
    """Trains a network in place."""

    network: Network
    data: Data
    settings: NetworkSettings
    generator: torch.Generator
    batch_size: int
    must_improve: bool = True  # whether a loss that is not smaller after training is an error
    history: History = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device = self.data.x.device
        self.mixed = self.settings.mixed_precision and self.device.type == "cuda"
        n_train = len(self.data.train)
        self.group = current_parallel()
        self.seed = self.generator.initial_seed()
        self.share = share_of_batch(self.batch_size, self.group)  # rows of a batch for this worker
        self.full_batch = n_train <= self.share
        settings, rate = self.settings, self.settings.learning_rate
        optimizer = Optimizer(
            self.network.parameters(), settings.optimizer, rate, settings.weight_decay, clip=settings.gradient_clip
        )
        epoch = math.ceil(n_train / self.batch_size)
        rates = torch.from_numpy(learning_rates(rate, settings.n_steps, settings.warmup_epochs * epoch))
        rates = rates.to(self.device)
        average = None if self.group is None else self._average_gradients
        self.loop = Loop(self.network, self._noisy_loss, LOSS_PARTS, optimizer, rates, self.generator, average)
        self.rows = self.data.train if self.full_batch else self.data.train[: self.share].clone()
        self.best_loss = torch.full((), math.inf, device=self.device)
        self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.step_done = 0

    def run(self, progress: StepProgress | None = None, checkpoint: Checkpoint | None = None) -> History:
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
            self._evaluate(means, time.perf_counter() - started)
            if checkpoint is not None and (self.group is None or self.group.rank == 0):
                checkpoint.save(*self._state())
            if progress is not None:
                progress(self.step_done, settings.n_steps, self.history[-1])
        if self.data.validation is not None and settings.patience is not None:
            self.network.load_state_dict(self.best)
        if not (last_loss := self._probe()) < first_loss and self.must_improve:
            raise TrainingError(
                f"Training did not reduce the loss: it was {first_loss:.6g} before and {last_loss:.6g} after training. "
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

    def _average_gradients(self) -> None:
        assert self.group is not None
        self.group.average([p.grad for p in self.network.parameters() if p.grad is not None])

    def _batches(self, n: int) -> Callable[[int], object]:
        """Draw the rows of the next n batches, with replacement; return what copies one of them into ``rows``."""
        first, shape = self.step_done, (n, self.share)
        places = torch.randint(len(self.data.train), shape, generator=self.generator, device=self.device)
        batches = self.data.train[places]
        return lambda number: self.rows.copy_(batches[number - first])

    # evaluation -----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _probe(self) -> float:
        """Return the loss on the same training rows every time, without noise."""
        return float(self._loss(self.data.train[: self.batch_size])[0])

    @torch.no_grad()
    def _evaluate(self, means: dict[str, float], seconds: float) -> None:
        """Add an entry to the history; keep the parameters if the validation loss is the best so far."""
        entry = {"step": float(self.step_done), **means, "seconds": seconds}
        if self.data.validation is not None:
            loss = self._loss(self.data.validation)[1]
            better = loss < self.best_loss
            self.best_loss = torch.minimum(self.best_loss, loss)
            for name, tensor in self.network.state_dict().items():
                self.best[name].copy_(torch.where(better, tensor, self.best[name]))
            entry["held_out"] = float(loss)
        self.history.append(entry)

    def _exhausted(self) -> bool:
        """Return whether the validation loss has not improved for ``patience`` intervals."""
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
        loaded = checkpoint.load()
        if loaded is None:
            return
        saved, info = loaded
        if not captured:  # capturing has created the moments already, at the addresses that the graph uses
            self._create_moments()
        for name, tensor in self._tensors():
            if name in saved:  # a parameter without a gradient has no moments
                tensor.copy_(saved[name])
        self.generator.set_state(saved["generator"])
        self.best_loss.copy_(saved["best_loss"])
        self.step_done, self.history = info["step"], info["history"]
        logger.info("resuming at step %d of %d", self.step_done, self.settings.n_steps)

    def _create_moments(self) -> None:
        """Take one step, in which optimisers create their moments; restoring the saved values undoes it."""
        optimizer = self.loop.optimizer
        for parameter in optimizer.parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step(0)
        for parameter in optimizer.parameters:
            parameter.grad = None
