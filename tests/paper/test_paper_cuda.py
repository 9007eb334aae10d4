"""On a GPU: captured steps learn, repeat themselves and resume; scores agree with the processor's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptad.paper.loop import Loop
from ptad.paper.training import Trainer
from ptad.reference import Reference, ReferenceSettings
from ptad.terms.network import NetworkTerm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

Fit = Callable[..., NetworkTerm]
Same = Callable[[NetworkTerm, NetworkTerm], bool]
Rows = NDArray[np.float64]
VARIANTS: list[dict[str, Any]] = [{}, {"optimizer": "adamw"}, {"mixed_precision": True}, {"batch_size": 32}]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_captured_steps_repeat_themselves_and_resume(
    fit_term: Fit,
    same_state: Same,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
) -> None:
    chosen = {"device": "cuda", "n_steps": 60, **fields}
    first = fit_term(rows, **chosen)
    assert first.history[-1]["total"] < first.history[0]["total"]
    assert same_state(first, fit_term(rows, **chosen))
    original, calls = Trainer._evaluate, [0]

    def counted(self: Trainer, *arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_evaluate", counted)
        with pytest.raises(KeyboardInterrupt):
            fit_term(rows, checkpoint=tmp_path, **chosen)
    assert same_state(first, fit_term(rows, checkpoint=tmp_path, **chosen))


def test_captured_steps_equal_plain_ones(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = fit_term(rows, device="cuda", dropout=0.0)
    monkeypatch.setattr(Loop, "capture", lambda self: None)
    plain = fit_term(rows, device="cuda", dropout=0.0)
    for one, other in zip(captured.history, plain.history, strict=True):
        assert one["total"] == pytest.approx(other["total"], rel=1e-3)


def test_scores_agree_with_the_processor(fit_term: Fit, rows: Rows) -> None:
    term = fit_term(rows)
    features, settings = term.encoding.features, term.settings
    reference = Reference(rows, features, ReferenceSettings(), "cuda")
    moved = NetworkTerm.from_state(term.state(), reference, settings)
    assert np.allclose(moved.value(rows), term.value(rows), rtol=1e-6)
    assert np.allclose(moved.explain(rows).shares, term.explain(rows).shares, atol=1e-6)
    given = torch.from_numpy(rows).cuda()
    assert moved.value(given).device.type == "cuda"
    assert np.array_equal(moved.value(given).cpu().numpy(), moved.value(rows))
