"""What every term keeps: its values, shares, reasons and state, whatever its formula."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy
from tables_for_terms import MIXED, TERMS, Fitted, fit_term, mixed_rows

from ptad.config import PRESETS
from ptad.layout import check_arrays
from ptad.reference import Reference
from ptad.tables.features import Features
from ptad.terms.base import Reason, TermSettings

every_term = pytest.mark.parametrize("settings", TERMS.values(), ids=TERMS)


@pytest.fixture(scope="module", params=TERMS)
def term(request: pytest.FixtureRequest) -> Fitted:
    return fit_term(TERMS[request.param], mixed_rows(300), MIXED)


def test_the_default_is_made_of_these_terms() -> None:
    assert {settings.title() for settings in PRESETS["default"].terms} <= set(TERMS)


def test_explained_values_are_the_values(term: Fitted) -> None:
    rows = mixed_rows(80, 1, unseen=True)
    said = term.explain(rows)
    assert np.array_equal(said.value, term.value(rows))
    assert said.value.shape == (80,) and np.isfinite(said.value).all()


def test_shares_are_not_negative_and_add_up_to_one_or_zero(term: Fitted) -> None:
    said = term.explain(mixed_rows(80, 1, unseen=True))
    assert said.shares.shape == (80, MIXED.n_columns) and (said.shares >= 0.0).all()
    total = said.shares.sum(axis=1)
    assert (np.isclose(total, 1.0, atol=1e-9) | (total == 0.0)).all()


def test_reasons_and_partners_name_what_is_there(term: Fitted) -> None:
    said = term.explain(mixed_rows(80, 1, unseen=True))
    assert said.reason.shape == said.partner.shape == (80, MIXED.n_columns)
    assert set(np.unique(said.reason)) <= set(Reason)
    assert (said.partner >= -1).all() and (said.partner < MIXED.n_columns).all()
    own = np.broadcast_to(np.arange(MIXED.n_columns), said.partner.shape)
    assert (said.partner != own).all()  # no column is combined with itself
    if said.expected is not None:
        assert said.expected.shape == (80, len(MIXED)) and not np.isinf(said.expected).any()


def test_a_row_has_one_value_alone_and_in_any_batch(term: Fitted) -> None:
    rows = mixed_rows(70, 2, unseen=True)
    together, order = term.value(rows), np.random.default_rng(3).permutation(70)
    assert np.array_equal(np.concatenate([term.value(rows[i : i + 1]) for i in range(70)]), together)
    assert np.array_equal(term.value(rows[order]), together[order])
    assert np.array_equal(term.value(np.asfortranarray(rows)), together)


def test_rows_are_left_untouched(term: Fitted) -> None:
    rows = mixed_rows(20, 2, unseen=True)
    before = rows.copy()
    term.value(rows), term.explain(rows), term.transform(rows)
    assert np.array_equal(rows, before, equal_nan=True)


def test_the_state_gives_the_term_back(term: Fitted) -> None:
    """The state survives the file format of a bundle, and with the reference rows it is all there is."""
    state = safetensors.numpy.load(safetensors.numpy.save(dict(term.term.state())))
    reference = Reference(mixed_rows(300), MIXED, term.reference.settings)
    check_arrays(type(term.term).layouts(MIXED, term.term.settings, len(reference.rows)), state)
    again = Fitted(type(term.term).from_state(state, reference, term.term.settings), reference)
    rows = mixed_rows(60, 4, unseen=True)
    first, second = term.explain(rows), again.explain(rows)
    assert np.array_equal(again.value(rows), term.value(rows))
    for name in ("value", "shares", "reason", "partner"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    if first.expected is not None:
        assert np.array_equal(first.expected, second.expected, equal_nan=True)


def test_transform_has_a_name_for_every_column(term: Fitted) -> None:
    found = term.transform(mixed_rows(9, 5, unseen=True))
    names = term.term.transform_names()
    assert names == [] if found is None else found.shape == (9, len(names)) and np.isfinite(found).all()


@every_term
def test_the_order_of_training_rows_does_not_matter(settings: TermSettings) -> None:
    train, rows = mixed_rows(200), mixed_rows(50, 6, unseen=True)
    order = np.random.default_rng(0).permutation(len(train))
    first, second = (fit_term(settings, x, MIXED).value(rows) for x in (train, train[order]))
    # far outside the table all distances are clipped to the same: there the ties decide, and they go by place
    assert np.array_equal(first[3:], second[3:])


@every_term
def test_the_order_of_columns_does_not_matter(settings: TermSettings) -> None:
    """With all pairs in use; sums over columns in another order differ in the last digits."""
    rng = np.random.default_rng(0)
    n_categories = np.array([0, 3, 0, 0, 2, 0])
    rows = rng.normal(size=(260, 6))
    rows[:, 1], rows[:, 4] = rng.integers(3, size=260), rng.integers(2, size=260)
    rows[rng.random((260, 6)) < 0.05] = np.nan
    order = rng.permutation(6)
    said = [
        fit_term(settings, x[:200], Features(np.arange(6), kinds)).explain(x[200:])
        for x, kinds in ((rows, n_categories), (rows[:, order], n_categories[order]))
    ]
    assert np.allclose(said[0].value, said[1].value, rtol=1e-9, atol=1e-9)
    assert np.allclose(said[0].shares[:, order], said[1].shares, rtol=1e-6, atol=1e-9)


@every_term
@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((2, 1)),
        np.ones((2, 3)),
        np.full((5, 2), np.nan),
        np.array([[0.0, 1.0], [np.nan, np.nan]]),
        np.array([[1.7e308, -1.7e308], [-1.7e308, 1.7e308], [0.0, 5e-324]]),
        np.array([[1.7e308, 0.0], [-1.7e308, 1.0]]),
        np.array([[5e-324], [0.0], [1e-320]]),
        np.repeat([[1.0, 2.0]], 40, axis=0),
    ],
    ids=["2 rows", "constant", "all missing", "a missing row", "huge", "wide", "tiny", "duplicates"],
)
def test_any_finite_table_gives_finite_values(settings: TermSettings, rows: np.ndarray) -> None:
    term = fit_term(settings, rows, Features.numeric(rows.shape[1]))
    new = np.concatenate([rows, np.full_like(rows[:1], np.nan), np.full_like(rows[:1], -1.7e308), rows[:1] * 0 + 1.0])
    said = term.explain(new)
    layouts = type(term.term).layouts(Features.numeric(rows.shape[1]), term.term.settings, len(rows))
    check_arrays(layouts, term.term.state())  # what a fit makes can be loaded
    assert np.isfinite(term.value(new)).all() and np.isfinite(said.shares).all()
    assert np.array_equal(said.value, term.value(new))
    assert said.expected is None or not np.isinf(said.expected).any()
