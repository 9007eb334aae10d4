"""Synthetic anomalies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD, synthetic
from ptad.report.synthetic_check import synthetic_check


@pytest.fixture(scope="module")
def rows(model) -> np.ndarray:
    return model.detector_.reference


def test_all_four_types_are_scored_the_same_way_every_time(model):
    found = synthetic_check(model)
    assert list(found) == ["local", "global", "dependency", "clustered"]
    assert all(value is not None and 0.4 < value <= 1.0 for value in found.values())
    assert found["global"] > 0.8
    assert found == synthetic_check(model)


def test_an_unchanged_row_is_no_anomaly(model, monkeypatch):
    """Neither side finds itself among the reference rows: anomalies that are none score like normal rows."""
    monkeypatch.setattr(synthetic, "_local", lambda rows, numeric, columns, rng: rows)
    assert synthetic_check(model)["local"] == pytest.approx(0.5)


def test_dependency_keeps_every_column_and_breaks_the_ties(model, rows):
    made = synthetic.disturbed_rows("dependency", rows, model.schema_, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(made, axis=0), np.sort(rows, axis=0))
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.9
    assert abs(np.corrcoef(made[:, 0], made[:, 1])[0, 1]) < 0.4


def test_categories_and_dates_stay_whole(model, rows):
    rng = np.random.default_rng(0)
    for name in ("city", "day"):
        span = np.flatnonzero(model.schema_.features.column == model.schema_.names.index(name))
        known = {tuple(row) for row in rows[:, span]}
        for kind in synthetic.ANOMALY_TYPES:
            made = synthetic.disturbed_rows(kind, rows, model.schema_, rng)
            assert {tuple(row) for row in made[:, span]} <= known
        assert (
            len({tuple(row) for row in synthetic.disturbed_rows("clustered", rows, model.schema_, rng)[:, span]}) == 1
        )


def test_local_spreads_and_clustered_gathers(model, rows):
    rng = np.random.default_rng(0)
    local = synthetic.disturbed_rows("local", rows, model.schema_, rng)
    clustered = synthetic.disturbed_rows("clustered", rows, model.schema_, rng)
    assert 1.1 < local[:, 0].std() / rows[:, 0].std() < 5.0**0.5 + 0.01
    assert clustered[:, 0].std() == pytest.approx(0.3 * rows[:, 0].std(), rel=1e-6)
    assert abs(clustered[:, 0].mean() - rows[:, 0].mean()) == pytest.approx(3.0 * rows[:, 0].std(), rel=1e-6)


def test_whole_numbers_stay_whole():
    x = pd.DataFrame({"n": np.arange(60) % 7, "x": np.linspace(0.0, 1.0, 60)})
    model = PTAD(verbose=0).fit(x)
    made = synthetic._round_whole_numbers(model.detector_.reference + 0.3, model.schema_)
    assert (made[:, 0] == np.rint(made[:, 0])).all()
    np.testing.assert_array_equal(made[:, 1], model.detector_.reference[:, 1] + 0.3)


def test_types_that_cannot_be_made_are_none(rows_of):
    found = synthetic_check(PTAD(verbose=0).fit(rows_of(60, 0)[["city"]]))
    assert (found["local"], found["dependency"], found["clustered"]) == (None, None, None)
    assert found["global"] is not None
    few = synthetic_check(PTAD(verbose=0).fit(rows_of(12, 0)[["length", "width"]]))
    assert set(few.values()) == {None}


def test_missing_cells_stay_missing_where_the_row_is_kept(rows_of):
    table = rows_of(80, 0)[["length", "width"]]
    table.loc[::4, "length"] = np.nan
    gappy = PTAD(verbose=0).fit(pd.DataFrame(table))
    rows = gappy.detector_.reference
    made = synthetic.disturbed_rows("local", rows, gappy.schema_, np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(made), np.isnan(rows))
    assert all(value is not None for value in synthetic_check(gappy).values())


def test_a_trained_model_is_not_trained_again(paper_model):
    found = synthetic_check(paper_model)
    assert all(value is not None for value in found.values())
