"""The schedule of the learning rate and the optimisers, each against a computation by hand."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_optimizer import Lamb, Lookahead

from ptad.errors import MissingExtraError
from ptad.paper.optimizer import Optimizer, learning_rates

# schedule -------------------------------------------------------------------------------------------------------------


def test_schedule_rises_linearly_then_falls_as_a_cosine() -> None:
    rates = learning_rates(2.0, 100, 10)
    assert len(rates) == 100 and rates.dtype == np.float32
    assert np.allclose(np.diff(rates[:11]), 2.0 / 11, atol=1e-6)
    assert rates[10] == 2.0 == rates.max()
    assert np.allclose(rates[10:], [1.0 + math.cos(math.pi * i / 90) for i in range(90)], atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.integers(0, 400))
def test_schedule_of_any_length(n_steps: int, warmup: int) -> None:
    rates = learning_rates(1.0, n_steps, warmup)
    assert len(rates) == n_steps and (rates > 0).all() and rates.max() == 1.0
    assert int(rates.argmax()) == min(warmup, n_steps // 2)


# optimiser ------------------------------------------------------------------------------------------------------------


def run_ours(
    optimizer: str, start: torch.Tensor, gradients: list[torch.Tensor], clip: float = 1.0, **fields: Any
) -> torch.Tensor:
    parameter = torch.nn.Parameter(start.clone())
    ours = Optimizer([parameter], optimizer, 0.01, clip=clip, **fields)
    for step, gradient in enumerate(gradients):
        ours.rate.fill_(0.01 * (step + 1))
        parameter.grad = gradient.clone()
        ours.step(step % ours.cycle)
    return parameter.detach()


def make_gradients(n: int = 14) -> tuple[torch.Tensor, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(6, 3, generator=generator)
    return start, [torch.randn(6, 3, generator=generator) for _ in range(n)]


def test_lamb_with_lookahead_equals_the_package_used_directly() -> None:
    start, gradients = make_gradients()
    parameter = torch.nn.Parameter(start.clone())
    # adam_debias=True is the package's word for: the first moment is not corrected for its bias
    lamb = Lamb([parameter], lr=0.01, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, adam_debias=True)
    direct = Lookahead(lamb, k=6, alpha=0.5)
    for step, gradient in enumerate(gradients):
        lamb.param_groups[0]["lr"] = 0.01 * (step + 1)
        parameter.grad = gradient.clamp(-1.0, 1.0)  # element-wise, as NPT's authors clip
        direct.step()
    found = run_ours("lamb", start, gradients)
    assert torch.allclose(found, parameter.detach(), atol=1e-6) and not torch.allclose(found, start, atol=1e-2)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_lamb_with_lookahead_by_hand(scale: float) -> None:
    """PAPER-08: no bias correction, the weight norm clamped to at most 10, Lookahead every 6 steps by one half."""
    start, gradients = make_gradients()
    weight = slow = scale * start.numpy().astype(np.float64)
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients):
        g = np.clip(gradient.numpy().astype(np.float64), -1.0, 1.0)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        move = first / (np.sqrt(second) + 1e-6)
        trust = min(float(np.linalg.norm(weight)), 10.0) / (np.linalg.norm(move) + 1e-6)
        weight = weight - 0.01 * (step + 1) * trust * move
        if step % 6 == 5:
            weight = slow = slow + 0.5 * (weight - slow)
    found = run_ours("lamb", scale * start, gradients).numpy()
    assert np.allclose(found, weight, rtol=1e-4, atol=1e-5 * scale)


def test_adamw_equals_torch_used_directly() -> None:
    start, gradients = make_gradients()
    parameter = torch.nn.Parameter(start.clone())
    direct = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    for step, gradient in enumerate(gradients):
        direct.param_groups[0]["lr"] = 0.01 * (step + 1)
        parameter.grad = gradient.clamp(-0.5, 0.5)
        direct.step()
    found = run_ours("adamw", start, gradients, weight_decay=0.1, clip=0.5)
    assert torch.allclose(found, parameter.detach(), atol=1e-6)


def test_lamb_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytorch_optimizer", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ptad\[torch\]'"):
        Optimizer([torch.nn.Parameter(torch.ones(2))], "lamb", 0.01)
