"""What holds for any table, over all terms of the default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptad import PTAD

# Every example fits a model: the same few examples in every run, and none is made smaller at the cost of many fits.
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
Rows = NDArray[np.float64]
QUICK = {"calibration.folds": 2, "calibration.most_folds": 2}

# Values that are hard on arithmetic, beside plain ones; NaN is a missing cell.
hard = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-320, 1e300, -1e300, 1.7e308, -1.7e308, 1e-9, 3.5, float("nan")])
cells = hard | st.floats(-10, 10) | st.integers(-3, 3).map(float)


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Arrays of 2 to 25 rows: constant columns, duplicates, rows without any value, huge values."""
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 5))
    rows = np.array(draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n)))
    if draw(st.booleans()):
        rows[:, 0] = rows[0, 0]
    if draw(st.booleans()):
        rows[n // 2 :] = rows[0]
    if draw(st.booleans()):
        rows[-1] = np.nan
    return rows


def fitted(rows: Any, **parameters: Any) -> PTAD:
    return PTAD(config=QUICK, verbose=0, **parameters).fit(rows)


def check_explanation(model: PTAD, table: Any, scores: Rows) -> None:
    found = model.explain(table)
    assert np.array_equal(found.score, scores)
    size = 1.0 + np.abs(found.contribution_values).sum(axis=1)
    assert (np.abs(found.contribution_values.sum(axis=1) - scores) <= 1e-6 * size).all()
    total = found.percentage_values.sum(axis=1)
    assert (found.percentage_values >= 0.0).all() and (np.isclose(total, 100.0) | (total == 0.0)).all()
    terms = model.term_scores(table)
    added = np.sum([np.asarray(terms[term.title()]) for term in model.config_.terms], axis=0)
    assert (np.abs(added - scores) <= 1e-6 * size).all()


@few
@given(tables(), tables())
def test_scores_are_finite_and_add_up_for_any_finite_table(train: Rows, new: Rows) -> None:
    model = fitted(train)
    d = min(train.shape[1], new.shape[1])
    rows = np.full((len(new), train.shape[1]), np.nan)
    rows[:, :d] = new[:, :d]
    for table in (train, rows):
        scores = model.anomaly_score(table)
        assert np.isfinite(scores).all()
        check_explanation(model, table, scores)
        p = model.p_value(table)
        assert ((p > 0.0) & (p <= 1.0)).all()
        assert np.array_equal(model.predict(table) == -1, p <= model.false_alarm_rate_)
        assert (np.diff(p[np.argsort(scores)]) <= 0.0).all()  # the more anomalous, the smaller


@few
@given(tables(), st.data())
def test_a_row_has_one_score(train: Rows, data: st.DataObject) -> None:
    """Alone, in any batch, order, chunk and thread count."""
    model = fitted(train)
    rows = np.concatenate([train, train[::-1] + 0.25, train * 0.5])
    scores = model.anomaly_score(rows)
    alone = np.concatenate([model.anomaly_score(rows[i : i + 1]) for i in range(len(rows))])
    assert np.array_equal(alone, scores)
    order = np.array(data.draw(st.permutations(range(len(rows)))))
    assert np.array_equal(model.anomaly_score(rows[order]), scores[order])
    start = data.draw(st.integers(0, len(rows) - 1))
    assert np.array_equal(model.anomaly_score(rows[start:]), scores[start:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ptad.parallel.n_processors", lambda: data.draw(st.sampled_from([1, 2, 5])))
        patch.setattr("ptad.parallel.in_chunks.__defaults__", (data.draw(st.integers(1, 9)),))
        assert np.array_equal(model.anomaly_score(rows), scores)
        check_explanation(model, rows, scores)


@few
@given(tables())
def test_a_saved_model_scores_the_same(tmp_path_factory: pytest.TempPathFactory, train: Rows) -> None:
    folder: Path = tmp_path_factory.mktemp("saved") / "model"
    model = fitted(train)
    model.save(folder)
    again, rows = PTAD.load(folder), np.concatenate([train, train + 0.25])
    assert np.array_equal(again.anomaly_score(rows), model.anomaly_score(rows))
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert np.array_equal(again.explain(rows).contribution_values, model.explain(rows).contribution_values)


words = st.sampled_from(["a", "b", "c", None])


@few
@given(st.integers(4, 30), st.data())
def test_tables_with_categories_dates_and_gaps(n: int, data: st.DataObject) -> None:
    def column(of: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(of, min_size=n, max_size=n))

    moments = st.datetimes(pd.Timestamp("2000-01-01"), pd.Timestamp("2030-01-01"))
    table = pd.DataFrame(
        {
            "always": np.arange(n) % 3 + 0.5,
            "number": pd.Series(column(st.none() | st.floats(-1e6, 1e6)), dtype=float),
            "word": pd.Series(column(words), dtype=object),
            "flag": pd.Series(column(st.none() | st.booleans()), dtype=object),
            "moment": pd.Series(column(st.none() | moments), dtype="datetime64[us]"),
        }
    )
    model = fitted(table)
    new = table.copy()
    if "word" in model.schema_.names and model.schema_.types["word"] == "categorical":
        new.loc[0, "word"] = "never seen"
    scores = model.anomaly_score(new)
    assert np.isfinite(scores).all()
    check_explanation(model, new, scores)
    assert np.array_equal(model.anomaly_score(new.iloc[::-1]), scores[::-1])
    assert np.array_equal(model.anomaly_score(new.iloc[[0]]), scores[:1])


@few
@given(st.integers(-3, 3), st.floats(-100.0, 100.0))
def test_units_of_columns_do_not_matter(power: int, shift: float) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    y = x * 10.0**power + shift
    first, second = (fitted(table).anomaly_score(table + 0.1 * np.ptp(table, axis=0)) for table in (x, y))
    assert np.allclose(first, second, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_duplicate_rows_have_one_score(missing: float) -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(10, 3)), 5, axis=0)
    x[np.repeat(rng.random((10, 3)) < missing, 5, axis=0)] = np.nan
    scores = fitted(x).anomaly_score(x)
    assert (scores.reshape(10, 5) == scores[::5, None]).all()
