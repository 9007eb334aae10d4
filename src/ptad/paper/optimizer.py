"""Adam, AdamW, or LAMB with Lookahead as in the paper, and the learning rate of every step: a warm-up, then a cosine.

The learning rate is a tensor, so that a CUDA graph reads its present value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ptad.errors import needs_extra

LOOKAHEAD_STEPS = 6
LOOKAHEAD_RATE = 0.5


class Optimizer:
    """One step rule, "adam", "adamw" or "lamb", for all parameters, which are on one device.

    Adam has the L2 form of weight decay; LAMB comes with Lookahead. ``rate`` is the learning rate, a single number on
    that device; ``clip`` is an element-wise bound on the gradients.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        kind: str,
        learning_rate: float,
        weight_decay: float = 0.0,
        clip: float | None = None,
    ) -> None:
        self.parameters = list(parameters)
        self.clip = clip
        device = self.parameters[0].device
        self.rate = torch.tensor(learning_rate, device=device)
        self._lookahead: Any = None
        if kind == "lamb":
            self._inner, self._lookahead = _lamb(self.parameters, learning_rate, weight_decay)
            self._inner.param_groups[0]["lr"] = self.rate
        else:
            make = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
            self._inner = make(
                self.parameters,
                lr=self.rate,
                weight_decay=weight_decay,
                fused=True,
                capturable=device.type == "cuda",
            )

    @property
    def cycle(self) -> int:
        """The number of kinds of step in a cycle (1, or Lookahead's 6): a CUDA graph is captured for each."""
        return LOOKAHEAD_STEPS if self._lookahead is not None else 1

    def step(self, position: int) -> None:
        """Clip the gradients, update the parameters, zero the gradients; ``position`` counts steps in the cycle."""
        if self.clip is not None:
            torch.nn.utils.clip_grad_value_(self.parameters, self.clip)
        if self._lookahead is None:
            self._inner.step()
        else:
            self._inner.param_groups[0]["counter"] = position
            self._lookahead.step()
        self._inner.zero_grad(set_to_none=False)

    def state(self) -> dict[str, Tensor]:
        """Return every tensor that a later step depends on, by name; writing into them restores a state."""
        tensors = {}
        for i, parameter in enumerate(self.parameters):
            for name in ("exp_avg", "exp_avg_sq", "step"):
                if isinstance(value := self._inner.state[parameter].get(name), Tensor):
                    tensors[f"{i}.{name}"] = value
            if self._lookahead is not None:
                tensors[f"{i}.slow_params"] = self._lookahead.state[parameter]["slow_params"]
        return tensors

    def reset(self) -> None:
        """Zero all moments; the slow weights become the present ones."""
        for name, value in self.state().items():
            if name.endswith("slow_params"):
                value.copy_(self.parameters[int(name.split(".")[0])].detach())
            else:
                value.zero_()


def _lamb(parameters: list[nn.Parameter], learning_rate: float, weight_decay: float) -> tuple[Any, Any]:
    with needs_extra("torch", "The paper's optimiser (optimizer='lamb')", "pytorch_optimizer"):
        from pytorch_optimizer import Lamb, Lookahead
    # NOTE[PAPER-08] betas (0.9, 0.999), eps 1e-6, no bias correction, weight norm clamped to [0, 10]: NPT's settings.
    inner = Lamb(
        parameters,
        lr=learning_rate,
        weight_decay=weight_decay,
        foreach=True,
        adam_debias=True,  # the library's name for NO correction, which would also be frozen in a CUDA graph
    )
    return inner, Lookahead(inner, k=LOOKAHEAD_STEPS, alpha=LOOKAHEAD_RATE)


def learning_rates(peak: float, n_steps: int, warmup_steps: int) -> NDArray[np.float32]:
    """Return the rate of every step, (n_steps,).

    NOTE[PAPER-11] The text's warm-up "gradually decreases" the rate; a warm-up increases it. It takes at most half of
    the steps, so that small tables, whose epochs are single steps, still reach the cosine.
    """
    warmup = min(warmup_steps, n_steps // 2)
    rising = (np.arange(warmup) + 1) / (warmup + 1)
    falling = 0.5 * (1.0 + np.cos(np.pi * np.arange(n_steps - warmup) / (n_steps - warmup)))
    return (peak * np.concatenate([rising, falling])).astype(np.float32)
