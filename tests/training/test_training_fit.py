"""Fits: the same seed, any table size, errors instead of silent models, history, quiet and loud."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptad import PTAD, TrainingError
from ptad.training import Trainer
from ptad.training.loss import PARTS
from ptad.training.optimizer import Optimizer

Make = Callable[..., PTAD]
Same = Callable[[PTAD, PTAD], bool]
Rows = NDArray[np.float64]
PRESETS = ("default", "paper")


@pytest.mark.parametrize("preset", PRESETS)
def test_same_seed_same_model_other_seed_other_model(
    make_detector: Make, same_parameters: Same, rows: Rows, preset: str
) -> None:
    first, second = make_detector(preset).fit(rows), make_detector(preset).fit(rows)
    other = make_detector(preset, parameters={"random_state": 1}).fit(rows)
    assert same_parameters(first, second)
    assert np.array_equal(first.anomaly_score(rows), second.anomaly_score(rows))
    assert first.offset_ == second.offset_
    assert not same_parameters(first, other)


@pytest.mark.parametrize("preset", PRESETS)
def test_global_generators_are_left_alone(make_detector: Make, rows: Rows, preset: str) -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    model = make_detector(preset).fit(rows)
    model.predict(rows)
    model.explain(rows[:3])
    assert torch.equal(torch_state, torch.get_rng_state())
    after = np.random.get_state()  # noqa: NPY002
    assert np.array_equal(numpy_state[1], after[1]) and numpy_state[2:] == after[2:]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n_rows", [2, 3, 20, 64, 65])
def test_any_table_size(make_detector: Make, rows: Rows, preset: str, n_rows: int) -> None:
    model = make_detector(preset).fit(rows[:n_rows])
    scores = model.anomaly_score(rows)
    assert np.isfinite(scores).all() and len(np.unique(scores)) > 50  # far rows are clipped alike
    assert model.false_alarm_rate_ == pytest.approx(max(0.01, 1 / (n_rows + 1)))


@pytest.mark.parametrize("calibration", ["cross", "split", "none"])
@pytest.mark.parametrize("patience", [None, 2])
def test_two_rows_with_every_calibration(
    make_detector: Make, rows: Rows, calibration: str, patience: int | None
) -> None:
    model = make_detector(calibration=calibration, patience=patience).fit(rows[:2])
    assert np.isfinite(model.anomaly_score(rows)).all()


def test_one_row_is_refused(make_detector: Make, rows: Rows) -> None:
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        make_detector().fit(rows[:1])


def test_one_step(make_detector: Make, rows: Rows) -> None:
    """The smallest allowed number of steps is a usable setting."""
    model = make_detector(n_steps=1, input_noise=0.0).fit(rows)
    assert np.isfinite(model.anomaly_score(rows)).all()


def test_a_non_finite_loss_is_an_error(make_detector: Make, rows: Rows) -> None:
    with pytest.raises(TrainingError, match=r"non-finite at step 5.*smaller learning_rate"):
        make_detector(learning_rate=1e6).fit(rows)


def test_non_finite_weights_are_an_error(make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer.__post_init__

    def poisoned(self: Trainer) -> None:
        next(self.network.parameters()).data.fill_(float("nan"))
        original(self)

    monkeypatch.setattr(Trainer, "__post_init__", poisoned)
    with pytest.raises(TrainingError):
        make_detector().fit(rows)


def test_a_network_that_did_not_learn_is_an_error(
    make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Optimizer, "step", lambda self, position: None)
    with pytest.raises(TrainingError, match=r"did not learn: its loss was .* before and .* after"):
        make_detector(input_noise=0.0, sampled_branch=False).fit(rows)


def test_equal_scores_are_an_error(make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptad.scoring import Scorer

    original = Scorer.parts

    def constant(self: Scorer, *arguments: Any) -> Any:
        parts = original(self, *arguments)
        parts.score[:] = 1.0
        return parts

    monkeypatch.setattr(Scorer, "parts", constant)
    with pytest.raises(TrainingError, match="All training rows have the same score"):
        make_detector().fit(rows)


def test_out_of_memory_halves_the_batch_and_says_so(
    make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original, sizes = Trainer.run, []

    def run(self: Trainer, *arguments: Any) -> Any:
        sizes.append(self.batch_size)
        if len(sizes) == 1:
            raise torch.OutOfMemoryError("pretended")
        return original(self, *arguments)

    monkeypatch.setattr(Trainer, "run", run)
    with caplog.at_level(logging.WARNING, logger="ptad"):
        model = make_detector().fit(rows)
    assert sizes[:2] == [64, 32]
    assert "out of memory: training again with batches of 32 rows" in caplog.text
    assert np.isfinite(model.anomaly_score(rows)).all()


def test_out_of_memory_for_good_is_an_error(make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Trainer, *_: Any) -> Any:
        raise MemoryError("pretended")

    monkeypatch.setattr(Trainer, "run", run)
    with pytest.raises(TrainingError, match="Out of memory even with batches of 8 rows"):
        make_detector().fit(rows)


def test_other_runtime_errors_pass_through(make_detector: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Trainer, *_: Any) -> Any:
        raise RuntimeError("a fault in the code")

    monkeypatch.setattr(Trainer, "run", run)
    with pytest.raises(RuntimeError, match="a fault in the code"):
        make_detector().fit(rows)


@pytest.mark.parametrize("preset", PRESETS)
def test_history_holds_every_part(make_detector: Make, rows: Rows, preset: str) -> None:
    model = make_detector(preset).fit(rows)
    history, config = model.history_, model.config_
    weights = (1.0, config.basis_loss_weight, config.prototype_loss_weight, config.orthogonality_weight)
    first = [entry for entry in history if entry["member"] == 0]
    assert [entry["step"] for entry in first] == [5, 10, 15, 20]
    for entry in history:
        assert set(PARTS) <= entry.keys() and all(np.isfinite(list(entry.values())))
        weighted = sum(weight * entry[part] for weight, part in zip(weights, PARTS[1:], strict=True))
        assert entry["total"] == pytest.approx(weighted, rel=1e-5)
    assert first[-1]["total"] < first[0]["total"]


def test_early_stopping_keeps_the_best_parameters(make_detector: Make, rows: Rows) -> None:
    model = make_detector(patience=2, n_steps=400, learning_rate=0.02, dropout=0.0).fit(rows)
    history = [entry for entry in model.history_ if entry["member"] == 0]
    losses = [entry["held_out"] for entry in history]
    assert len(history) < 80, "it went on to the end"
    assert len(losses) - 1 - int(np.argmin(losses)) == 2
    assert min(losses) < losses[0]


def test_without_patience_there_is_no_held_out_loss(detector: PTAD) -> None:
    assert all("held_out" not in entry for entry in detector.history_)


def test_quiet(
    make_detector: Make, rows: Rows, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"):
        make_detector().fit(rows)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    assert "step" not in caplog.text


def test_logging_elsewhere_than_on_a_terminal(
    tiny: dict[str, Any], rows: Rows, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"):
        PTAD(config=tiny).fit(rows)
    assert "step 5 of 20: loss" in caplog.text and "step 20 of 20: loss" in caplog.text
    assert capfd.readouterr().out == ""


def test_a_foreign_checkpoint_is_refused(make_detector: Make, rows: Rows, tmp_path: Path) -> None:
    make_detector().fit(rows, checkpoint=tmp_path)
    for other, table in [
        (make_detector(), rows[::-1].copy()),
        (make_detector(learning_rate=0.001), rows),
        (make_detector(parameters={"random_state": 1}), rows),
    ]:
        with pytest.raises(ValueError, match=r"belongs to another fit .*Delete it or name another path"):
            other.fit(table, checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_refused(make_detector: Make, rows: Rows, tmp_path: Path) -> None:
    make_detector().fit(rows, checkpoint=tmp_path)
    for file in tmp_path.glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"cannot be read .*Delete it and fit again"):
        make_detector().fit(rows, checkpoint=tmp_path)


def test_a_checkpoint_changes_nothing(make_detector: Make, same_parameters: Same, rows: Rows, tmp_path: Path) -> None:
    assert same_parameters(make_detector().fit(rows), make_detector().fit(rows, checkpoint=tmp_path))
    # and a finished one is taken as it is
    assert same_parameters(make_detector().fit(rows), make_detector().fit(rows, checkpoint=tmp_path))
