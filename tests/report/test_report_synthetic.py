"""Anomalies made on purpose."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD
from ptad.report import synthetic
from ptad.report.synthetic import synthetic_check


@pytest.fixture(scope="module")
def rows(model) -> np.ndarray:
    return model.scorer_.reference_rows[0].numpy()


def test_all_four_kinds_are_judged_the_same_way_every_time(model):
    found = synthetic_check(model)
    assert list(found) == ["local", "global", "dependency", "clustered"]
    assert all(value is not None and 0.4 < value <= 1.0 for value in found.values())
    assert found["global"] > 0.8
    assert found == synthetic_check(model)


def test_dependency_keeps_every_column_and_breaks_the_ties(model, rows):
    made = synthetic._dependency(rows, model.schema_, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(made, axis=0), np.sort(rows, axis=0))
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.9
    assert abs(np.corrcoef(made[:, 0], made[:, 1])[0, 1]) < 0.4


def test_categories_stay_whole(model, rows):
    city = np.flatnonzero(model.schema_.groups == model.schema_.names.index("city"))
    rng = np.random.default_rng(0)
    known = {tuple(row) for row in rows[:, city]}
    for make in (synthetic._local, synthetic._global, synthetic._dependency, synthetic._clustered):
        assert {tuple(row) for row in make(rows, model.schema_, rng)[:, city]} <= known
    assert len({tuple(row) for row in synthetic._clustered(rows, model.schema_, rng)[:, city]}) == 1


def test_local_spreads_and_clustered_gathers(model, rows):
    rng = np.random.default_rng(0)
    local = synthetic._local(rows, model.schema_, rng)
    clustered = synthetic._clustered(rows, model.schema_, rng)
    assert 1.1 < local[:, 0].std() / rows[:, 0].std() < 5.0**0.5 + 0.01
    assert clustered[:, 0].std() == pytest.approx(0.3 * rows[:, 0].std(), rel=1e-6)
    assert abs(clustered[:, 0].mean() - rows[:, 0].mean()) == pytest.approx(3.0 * rows[:, 0].std(), rel=1e-6)


def test_kinds_that_cannot_be_made_are_none(rows_of, tiny):
    city = rows_of(60, 0)[["city"]]
    found = synthetic_check(PTAD(config=tiny, verbose=0).fit(city))
    assert (found["local"], found["dependency"], found["clustered"]) == (None, None, None)
    assert found["global"] is not None


def test_missing_cells_stay_missing_where_the_row_is_kept(rows_of, tiny):
    table = rows_of(80, 0)[["length", "width"]]
    table.loc[::4, "length"] = np.nan
    gappy = PTAD(config=tiny, verbose=0).fit(pd.DataFrame(table))
    rows = gappy.scorer_.reference_rows[0].numpy()
    made = synthetic._local(rows, gappy.schema_, np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(made), np.isnan(rows))
    assert all(value is not None for value in synthetic_check(gappy).values())
