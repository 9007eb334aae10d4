"""DTE-C: estimate for how long a row must have diffused away from the normal rows.

References
----------
Livernoche et al. On diffusion modeling for anomaly detection. ICLR 2024.

Departures
----------
* The original hands softmax outputs to a cross-entropy that applies softmax once more. ``double_softmax=True``
  (default) keeps that, since the published figures have it; ``False`` is the plain cross-entropy.
* The last, incomplete minibatch of an epoch is filled up (shared loop).
* The published figures of small tables come from rows drawn with replacement to 1,000 before the split, which puts
  copies of training rows among the test rows and trains longer; here the tables are as they are.
* DTE-NP, the non-parametric form, is ``dte-np``: the mean distance to the 5 nearest rows (see ``neighbours``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.deep import DeepPeer, TrainingSettings, linear
from ptad.paper.layers import Noise


@dataclass(eq=False, kw_only=True)
class DteC(DeepPeer):
    """Expected bin of the diffusion time."""

    default_training = TrainingSettings(epochs=400, batch_size=64, learning_rate=1e-4, weight_decay=5e-4)

    n_times: int = 400  # diffusion times
    n_bins: int = 7  # classes, equal shares of the times
    double_softmax: bool = True  # keep the original's softmax before the cross-entropy

    def _build(self, n_features: int, generator: torch.Generator) -> nn.Module:
        first, second, third, last = (
            linear(n_in, n_out, generator, bias=True)
            for n_in, n_out in pairwise((n_features, 256, 512, 256, self.n_bins))
        )
        relu, dropout = nn.ReLU(), HalfDropout(self._noise)
        return nn.Sequential(first, relu, second, relu, dropout, third, relu, dropout, last)

    def _before_training(self, rows: Tensor) -> None:
        self._noise_scale = noise_scale(self.n_times).to(rows.device)

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        time = torch.randint(0, self.n_times, (len(batch),), generator=generator, device=batch.device)
        noise = torch.randn(batch.shape, generator=generator, device=batch.device)
        diffused = batch + self._noise_scale[time].unsqueeze(1) * noise
        return self._cross_entropy(self._module(diffused), time * self.n_bins // self.n_times)

    def _cross_entropy(self, logits: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.softmax(1) if self.double_softmax else logits, target)

    def _score_batch(self, batch: Tensor) -> Tensor:
        bins = torch.arange(self.n_bins, device=batch.device, dtype=torch.float32)
        expected: Tensor = self._module(batch).softmax(1) @ bins
        return expected


class HalfDropout(nn.Module):
    """Dropout with probability 0.5, drawn from the noise of the training; the identity outside it."""

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self.noise = noise

    def forward(self, x: Tensor) -> Tensor:
        if not self.noise.active:
            return x
        keep = torch.rand(x.shape, generator=self.noise.generator, device=x.device, dtype=x.dtype) >= 0.5
        return x * keep / 0.5


def noise_scale(n_times: int) -> Tensor:
    """Return the standard deviation of the noise at each time: sqrt(1 - prod(1 - beta)), betas linear."""
    beta = torch.linspace(1e-4, 1e-2, n_times, dtype=torch.float64)
    return (1.0 - torch.cumprod(1.0 - beta, 0)).sqrt().float()
