"""The training loop of the paper's network and of the compared ones: steps of one shape, captured as CUDA graphs.

Within an interval no value is read back to the host: the sums of the loss stay on the device. What differs between
trainings is passed in: the loss of the current batch, what fills the batch, and what is done to the gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ptad.errors import TrainingError
from ptad.paper.optimizer import Optimizer

# A captured graph must not see the first calls of lazily made buffers and autotuned kernels.
WARM_UP_STEPS = 3


@dataclass
class Loop:
    """Steps that train a module in place."""

    module: nn.Module
    #: Returns the parts of the loss of the current batch, (n_parts,), without waiting for them; the first is minimised.
    loss: Callable[[], Tensor]
    parts: Sequence[str]  # their names
    optimizer: Optimizer
    rates: Tensor  # (n_steps,), the learning rate of every step, on the device
    generator: torch.Generator  # of the noise inside the loss
    after_backward: Callable[[], None] | None = None  # changes the gradients before the step is taken

    def __post_init__(self) -> None:
        self.sums = torch.zeros(len(self.parts), device=self.rates.device)
        self._steps: Sequence[Callable[[int], None]] = [self.step] * self.optimizer.cycle

    def step(self, position: int) -> None:
        """Take one step; ``position`` counts steps in the optimiser's cycle."""
        parts = self.loss()
        parts[0].backward()
        if self.after_backward is not None:
            self.after_backward()
        self.optimizer.step(position)
        self.sums.add_(parts.detach())

    def run(self, first: int, n: int, fill: Callable[[int], object] | None = None) -> dict[str, float]:
        """Take ``n`` steps from number ``first`` on; return the mean parts of the loss, or fail if one is not finite.

        ``fill`` is called with the number of each step and copies its rows into the current batch.
        """
        self.sums.zero_()
        for number in range(first, first + n):
            if fill is not None:
                fill(number)
            self.optimizer.rate.copy_(self.rates[number])
            position = number % self.optimizer.cycle
            self._steps[position](position)
        means = dict(zip(self.parts, (self.sums / n).tolist(), strict=True))
        if not all(map(math.isfinite, means.values())):
            raise TrainingError(
                f"The loss became non-finite at step {first + n} ({means}). Try a smaller learning_rate, or scale the "
                "columns."
            )
        return means

    def capture(self) -> None:
        """Replace every kind of step by a CUDA graph; what the warm-up steps change is restored."""
        saved = {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}
        seed = self.generator.get_state()
        cycle = self.optimizer.cycle
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for number in range(max(cycle, WARM_UP_STEPS)):
                self.step(number % cycle)
        torch.cuda.current_stream().wait_stream(side)
        graphs: list[torch.cuda.CUDAGraph] = []
        for position in sorted({0, cycle - 1}):  # all steps of a cycle but the last are alike
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            # The graphs run one after the other: they share their memory. Other threads may use CUDA meanwhile.
            pool = graphs[0].pool() if graphs else None
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                self.step(position)
            graphs.append(graph)
        self.module.load_state_dict(saved)
        self.optimizer.reset()
        self.generator.set_state(seed)
        self._steps = [partial(_replay, graphs[0])] * (cycle - 1) + [partial(_replay, graphs[-1])]


def _replay(graph: torch.cuda.CUDAGraph, _: int) -> None:
    graph.replay()
