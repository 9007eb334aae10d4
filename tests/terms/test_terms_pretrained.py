"""The pretrained network: what it reads, what it may not depend on, and the same result in every library."""

from __future__ import annotations

import numpy as np
import pytest
from tables_for_terms import MIXED, Fitted, fit_term, mixed_rows

from ptad.attribution import final_contributions
from ptad.config import Config
from ptad.detector import Detector
from ptad.explanation import attribute_rows
from ptad.layout import check_arrays
from ptad.reference import Batch
from ptad.tables.features import Features
from ptad.terms.nearest_row import NearestRowSettings
from ptad.terms.pretrained import N_CELL, N_SUMMARY, PretrainedSettings, forward, weights

RNG = np.random.default_rng(0)
TRAIN = RNG.normal(size=(400, 5)) @ RNG.normal(size=(5, 5))
NEW = np.concatenate([RNG.normal(size=(20, 5)), 4.0 * RNG.normal(size=(20, 5))])


@pytest.fixture(scope="module")
def term() -> Fitted:
    return fit_term(PretrainedSettings(), TRAIN, Features.numeric(5))


def test_the_order_of_columns_plays_no_part(term: Fitted) -> None:
    order = np.array([3, 0, 4, 2, 1])
    turned = fit_term(PretrainedSettings(), TRAIN[:, order], Features.numeric(5))
    first, second = term.explain(NEW), turned.explain(NEW[:, order])
    np.testing.assert_allclose(second.value, first.value, atol=1e-9)
    np.testing.assert_allclose(second.shares, first.shares[:, order], atol=1e-9)


def test_the_order_of_reference_rows_plays_no_part(term: Fitted) -> None:
    order = RNG.permutation(len(TRAIN))
    turned = fit_term(PretrainedSettings(), TRAIN[order], Features.numeric(5))
    np.testing.assert_allclose(turned.value(NEW), term.value(NEW), atol=1e-9)


def test_scale_and_place_of_a_column_play_no_part(term: Fitted) -> None:
    scale, shift = np.array([1e-3, 1.0, 2.0, 1e4, 7.0]), np.array([0.0, 5.0, -3.0, 1e3, 0.1])
    moved = fit_term(PretrainedSettings(), TRAIN * scale + shift, Features.numeric(5))
    np.testing.assert_allclose(moved.value(NEW * scale + shift), term.value(NEW), atol=1e-4)


def test_a_row_has_one_value_alone_and_in_any_batch(term: Fitted) -> None:
    together, order = term.value(NEW), RNG.permutation(len(NEW))
    assert np.array_equal(np.concatenate([term.value(NEW[i : i + 1]) for i in range(len(NEW))]), together)
    assert np.array_equal(term.value(NEW[order]), together[order])
    assert np.array_equal(term.value(np.asfortranarray(NEW)), together)
    assert np.array_equal(term.explain(NEW).value, together)


def test_the_value_is_the_mean_over_columns(term: Fitted) -> None:
    said = forward(weights(), *term.term.inputs(Batch(NEW, term.reference)))
    np.testing.assert_allclose(term.value(NEW), np.log(np.exp(said).mean(axis=1)), rtol=1e-12)


def test_a_value_far_outside_is_more_anomalous_and_its_column_is_named(term: Fitted) -> None:
    """The weights have learned something: 20 normal rows, each with one cell pushed out of the table's range."""
    normal = TRAIN[:20] + 1e-3
    pushed = normal.copy()
    pushed[:, 2] = TRAIN[:, 2].max() + 3.0 * TRAIN[:, 2].std()
    assert (term.value(pushed) > term.value(normal)).all()
    assert (term.explain(pushed).shares.argmax(axis=1) == 2).all()


def test_a_baseline_in_steps_is_the_same(term: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many columns or neighbours, the differences of all rows at once would take gigabytes."""
    expected = term.value(NEW)
    monkeypatch.setattr("ptad.terms.pretrained.CELLS_AT_ONCE", 1)
    assert np.array_equal(fit_term(PretrainedSettings(), TRAIN, Features.numeric(5)).value(NEW), expected)


def test_a_table_with_categories_or_too_many_columns_gets_nothing() -> None:
    for settings, rows, features in (
        (PretrainedSettings(), mixed_rows(100), MIXED),
        (PretrainedSettings(most_features=4), TRAIN, Features.numeric(5)),
    ):
        fitted = fit_term(settings, rows, features)
        assert not fitted.term.standardised
        assert (fitted.value(rows[:9]) == 0.0).all() and (fitted.explain(rows[:9]).shares == 0.0).all()
        alone, both = (
            Detector.fit(rows, features, Config(terms=terms), seed=0).scores(rows[:9])
            for terms in ((NearestRowSettings(),), (NearestRowSettings(), settings))
        )
        assert np.array_equal(alone, both)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 32])
def test_any_number_of_columns_is_read_and_contributions_add_up(n_columns: int) -> None:
    """No weight belongs to a column; the term alone, and beside another one."""
    rng = np.random.default_rng(n_columns)
    rows = rng.normal(size=(200, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    rows[::7, 0] = np.nan
    for terms in ((PretrainedSettings(),), (PretrainedSettings(), NearestRowSettings())):
        detector = Detector.fit(rows[:150], Features.numeric(n_columns), Config(terms=terms), seed=0)
        score, by_term, found = attribute_rows(rows[150:], detector)
        assert (by_term[:, 0] > 0.0).all() and np.array_equal(score, detector.scores(rows[150:]))
        shares = detector.pipeline.explain(rows[150:])[0].shares
        assert (shares >= 0.0).all() and np.allclose(shares.sum(axis=1), 1.0)
        contributions = final_contributions(found.contributions, found.as_expected, score)
        np.testing.assert_allclose(contributions.sum(axis=1), score, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 9, 40])
def test_few_rows_are_enough(n: int) -> None:
    fitted = fit_term(PretrainedSettings(), TRAIN[:n], Features.numeric(5))
    assert np.isfinite(fitted.value(NEW)).all()


def test_constant_columns_and_missing_cells_are_read() -> None:
    rows = TRAIN.copy()
    rows[:, 1] = 7.0
    rows[::5, 3] = np.nan
    fitted = fit_term(PretrainedSettings(), rows, Features.numeric(5))
    assert np.isfinite(fitted.value(np.full((3, 5), np.nan))).all() and np.isfinite(fitted.value(NEW)).all()


def test_a_saved_model_keeps_its_weights(term: Fitted) -> None:
    state = {name: 0.5 * value for name, value in term.term.state().items()}
    again = Fitted(type(term.term).from_state(state, term.reference, term.term.settings), term.reference)
    halved = {name: 0.5 * value for name, value in weights().items()}
    said = forward(halved, *term.term.inputs(Batch(NEW, term.reference)))
    np.testing.assert_allclose(again.value(NEW), np.log(np.exp(said).mean(axis=1)), rtol=1e-6)
    layouts = type(term.term).layouts(term.reference.features, term.term.settings, len(TRAIN))
    check_arrays(layouts, term.term.state())
    assert layouts.keys() == state.keys()


def test_torch_gives_what_numpy_gives() -> None:
    torch = pytest.importorskip("torch")
    cells, summary = RNG.normal(size=(30, 4, 2 * N_CELL)), RNG.normal(size=(30, 2 * N_SUMMARY))
    found = forward(weights(), torch.from_numpy(cells), torch.from_numpy(summary)).numpy()
    np.testing.assert_allclose(found, forward(weights(), cells, summary), atol=1e-12)


def test_the_network_is_the_one_that_was_trained() -> None:
    """Written out with loops for one row of two columns: the layers are where the training put them."""
    w = weights()
    cells, summary = RNG.normal(size=(2, 2 * N_CELL)), RNG.normal(size=2 * N_SUMMARY)

    def dense(x, name, active=False):
        y = w[f"{name}.bias"] + sum(x[i] * w[f"{name}.weight"][i] for i in range(len(x)))
        return np.maximum(y, 0.0) if active else y

    row = dense(dense(summary, "row.0", True), "row.1")
    seen = [dense(dense(cell, "cell.0", True), "cell.1") + row for cell in cells]
    active = np.maximum(seen, 0.0)
    context = dense(np.concatenate([active.mean(axis=0), active.max(axis=0)]), "context")
    expected = [dense(dense(np.maximum(x + context, 0.0), "head.0", True), "head.1")[0] for x in seen]
    np.testing.assert_allclose(forward(w, cells[None], summary[None])[0], expected, rtol=1e-12)
