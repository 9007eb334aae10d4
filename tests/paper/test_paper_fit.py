"""Fits: the same seed, any table size, errors instead of silent models, history."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from batches import batch
from numpy.typing import NDArray

from ptad.devices import resolve_device
from ptad.errors import SettingError, TrainingError
from ptad.paper.loss import LOSS_PARTS
from ptad.paper.optimizer import Optimizer
from ptad.paper.training import Trainer
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Same = Callable[[NetworkTerm, NetworkTerm], bool]
Rows = NDArray[np.float64]
OPTIMIZERS = ("lamb", "adamw")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_same_seed_same_term_other_seed_other_term(fit_term: Fit, same_state: Same, rows: Rows, optimizer: str) -> None:
    first, second = fit_term(rows, optimizer=optimizer), fit_term(rows, optimizer=optimizer)
    assert same_state(first, second)
    assert np.array_equal(first.value(batch(rows)), second.value(batch(rows)))
    assert not same_state(first, fit_term(rows, optimizer=optimizer, seed=1))


def test_global_generators_are_left_alone(fit_term: Fit, rows: Rows) -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    fit_term(rows, projection_mask="random").explain(batch(rows[:3]))
    assert torch.equal(torch_state, torch.get_rng_state())
    after = np.random.get_state()  # noqa: NPY002
    assert np.array_equal(numpy_state[1], after[1]) and numpy_state[2:] == after[2:]


def test_the_rows_are_left_alone(fit_term: Fit, rows: Rows) -> None:
    given = rows.copy()
    fit_term(given).explain(batch(given))
    assert np.array_equal(given, rows)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 20, 64, 65])
@pytest.mark.parametrize("patience", [None, 2])
def test_any_table_size(fit_term: Fit, rows: Rows, n_rows: int, patience: int | None) -> None:
    value = fit_term(rows[:n_rows], patience=patience).value(batch(rows))
    assert np.isfinite(value).all() and len(np.unique(value)) > 50


def test_one_step(fit_term: Fit, rows: Rows) -> None:
    """The smallest allowed number of steps is a usable setting."""
    assert np.isfinite(fit_term(rows, n_steps=1).value(batch(rows))).all()


def test_the_paper_preset_as_it_is(fit_term: Fit, rows: Rows) -> None:
    """Full width, four heads, all branches; only the number of steps is cut."""
    fields = {"embedding_dim": 16, "n_heads": 4, "abd_width": None, "batch_size": 512, "n_reference": 512}
    term = fit_term(rows, n_steps=3, **fields)
    assert len(term.reference) == 100 and np.isfinite(term.value(batch(rows))).all()


def test_a_non_finite_loss_is_an_error(fit_term: Fit, rows: Rows) -> None:
    with pytest.raises(TrainingError, match=r"non-finite at step \d+.*smaller learning_rate"):
        fit_term(rows, learning_rate=1e3, optimizer="adamw", n_steps=100)


def test_non_finite_weights_are_an_error(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer.__post_init__

    def poisoned(self: Trainer) -> None:
        next(self.network.parameters()).data.fill_(float("nan"))
        original(self)

    monkeypatch.setattr(Trainer, "__post_init__", poisoned)
    with pytest.raises(TrainingError):
        fit_term(rows)


def test_a_network_that_did_not_learn_is_an_error(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Optimizer, "step", lambda self, position: None)
    with pytest.raises(TrainingError, match=r"did not reduce the loss: it was .* before and .* after"):
        fit_term(rows)


def test_equal_scores_are_an_error(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkTerm, "value", lambda self, rows: np.ones(len(rows)))
    with pytest.raises(TrainingError, match="All training rows have the same score"):
        fit_term(rows)


def test_equal_rows_may_have_equal_scores(fit_term: Fit) -> None:
    assert len(np.unique(fit_term(np.ones((20, 3))).value(batch(np.ones((20, 3)))))) == 1


def test_out_of_memory_halves_the_batch_and_says_so(
    fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    original, sizes = Trainer.run, []

    def run(self: Trainer, *arguments: Any) -> Any:
        sizes.append(self.batch_size)
        if len(sizes) == 1:
            raise torch.OutOfMemoryError("pretended")
        return original(self, *arguments)

    monkeypatch.setattr(Trainer, "run", run)
    with caplog.at_level(logging.WARNING, logger="ptad"):
        term = fit_term(rows, checkpoint=tmp_path)
    assert sizes == [64, 32]
    assert "out of memory: training again with batches of 32 rows" in caplog.text
    assert np.isfinite(term.value(batch(rows))).all()
    fit_term(rows, checkpoint=tmp_path)
    assert sizes == [64, 32, 32]  # the checkpoint remembers what went well


def test_out_of_memory_for_good_is_an_error(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Trainer, *_: Any) -> Any:
        raise MemoryError("pretended")

    monkeypatch.setattr(Trainer, "run", run)
    with pytest.raises(TrainingError, match="Out of memory even with batches of 8 rows"):
        fit_term(rows)


def test_other_runtime_errors_pass_through(fit_term: Fit, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Trainer, *_: Any) -> Any:
        raise RuntimeError("a fault in the code")

    monkeypatch.setattr(Trainer, "run", run)
    with pytest.raises(RuntimeError, match="a fault in the code"):
        fit_term(rows)


def test_history_and_progress_hold_every_part(fit_term: Fit, rows: Rows) -> None:
    told: list[tuple[int, int, dict[str, float]]] = []
    term = fit_term(rows, progress=lambda *told_now: told.append(told_now))
    settings = term.settings
    weights = (1.0, settings.basis_loss_weight, settings.prototype_loss_weight, settings.orthogonality_weight)
    assert [entry["step"] for entry in term.history] == [5, 10, 15, 20]
    assert told == [(int(entry["step"]), 20, entry) for entry in term.history]
    for entry in term.history:
        assert set(LOSS_PARTS) <= entry.keys() and all(np.isfinite(list(entry.values())))
        weighted = sum(weight * entry[part] for weight, part in zip(weights, LOSS_PARTS[1:], strict=True))
        assert entry["total"] == pytest.approx(weighted, rel=1e-5)
    assert term.history[-1]["total"] < term.history[0]["total"]
    assert all("held_out" not in entry for entry in term.history)


def test_early_stopping_keeps_the_best_parameters(fit_term: Fit, rows: Rows) -> None:
    term = fit_term(rows, patience=2, n_steps=400, learning_rate=0.02, dropout=0.0, optimizer="adamw")
    losses = [entry["held_out"] for entry in term.history]
    assert len(losses) < 80, "it went on to the end"
    assert len(losses) - 1 - int(np.argmin(losses)) == 2
    assert min(losses) < losses[0]


def test_devices() -> None:
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("nonsense", "cuda:99"):
        with pytest.raises(SettingError, match=f"The device '{name}' cannot be used: .*Set device= to"):
            resolve_device(name)
