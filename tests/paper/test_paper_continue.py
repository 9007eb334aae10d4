"""Warm continuation: a term follows new normal rows and keeps the old ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hidden_factors import draw
from ptad.errors import SettingError
from ptad.paper.training import Trainer
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import FitContext
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Same = Callable[[NetworkTerm, NetworkTerm], bool]
Rows = NDArray[np.float64]


def context(seed: int = 0, checkpoint: Path | None = None) -> FitContext:
    return FitContext(np.random.default_rng(seed), 100, checkpoint=checkpoint)


def kept(rows: Rows) -> Reference:
    return Reference(rows, Features.numeric(6), ReferenceSettings())


@pytest.fixture(scope="module")
def fitted(fit_term: Fit) -> NetworkTerm:
    return fit_term(draw(200, 0), n_steps=40)


def test_it_follows_new_rows_and_keeps_the_old_ones(fitted: NetworkTerm) -> None:
    both = np.concatenate([draw(200, 0), draw(200, 1, shift=3.0)])
    after = fitted.continue_fit(both, kept(both), context(), n_steps=60)
    new, old, never = draw(300, 2, shift=3.0), draw(300, 4), draw(300, 4, shift=-3.0)
    assert np.median(after.value(new)) < np.median(fitted.value(new))
    assert np.median(after.value(old)) < np.median(after.value(never))


def test_the_term_itself_stays_as_it_is(fitted: NetworkTerm, same_state: Same) -> None:
    before, test = {n: a.copy() for n, a in fitted.state().items()}, draw(20, 2)
    value, history = fitted.value(test), list(fitted.history)
    after = fitted.continue_fit(draw(100, 1), kept(draw(100, 1)), context())
    assert all(np.array_equal(array, before[name]) for name, array in fitted.state().items())
    assert np.array_equal(fitted.value(test), value) and fitted.history == history
    assert not same_state(after, fitted) and not np.array_equal(after.value(test), value)
    assert after.settings == fitted.settings == after.scorer.network.settings
    for name in ("centre", "scale", "missing_rate"):
        assert np.array_equal(after.state()[f"encoding.{name}"], before[f"encoding.{name}"])


def test_a_quarter_of_the_steps_and_of_the_rate(fitted: NetworkTerm, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = Trainer.__post_init__

    def post_init(self: Trainer) -> None:
        seen.append(self.settings)
        original(self)

    monkeypatch.setattr(Trainer, "__post_init__", post_init)
    after = fitted.continue_fit(draw(100, 1), kept(draw(100, 1)), context())
    assert [(s.n_steps, s.learning_rate, s.patience) for s in seen] == [(10, 0.0025, None)]
    assert after.history[: len(fitted.history)] == fitted.history
    assert after.history[-1]["step"] == fitted.history[-1]["step"] + 10


def test_a_restored_term_continues_to_the_same_state(fitted: NetworkTerm, same_state: Same) -> None:
    new = draw(100, 1)
    restored = NetworkTerm.from_state(fitted.state(), kept(draw(200, 0)), fitted.settings)
    assert same_state(restored.continue_fit(new, kept(new), context()), fitted.continue_fit(new, kept(new), context()))


def test_a_continuation_has_a_checkpoint_of_its_own(fitted: NetworkTerm, same_state: Same, tmp_path: Path) -> None:
    new = draw(100, 1)
    after = fitted.continue_fit(new, kept(new), context(checkpoint=tmp_path))
    assert same_state(after, fitted.continue_fit(new, kept(new), context(checkpoint=tmp_path)))
    with pytest.raises(SettingError, match="belongs to another fit"):
        after.continue_fit(new, kept(new), context(checkpoint=tmp_path))  # from another start


def test_batches_leave_no_trace_afterwards(fitted: NetworkTerm) -> None:
    after, test = fitted.continue_fit(draw(100, 1), kept(draw(100, 1)), context()), draw(20, 2)
    alone = np.concatenate([after.value(test[i : i + 1]) for i in range(20)])
    assert np.array_equal(alone, after.value(test))


def test_no_steps_are_refused(fitted: NetworkTerm) -> None:
    with pytest.raises(SettingError, match=r"'network.n_steps' must be a whole number, at least 1"):
        fitted.continue_fit(draw(10, 1), kept(draw(10, 1)), context(), n_steps=0)
