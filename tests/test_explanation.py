"""Why this row: contributions add up, the planted cell comes first, and every reason has its word."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine

from ptad import PTAD, Explanation
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
QUICK = {"calibration.folds": 10, "calibration.most_folds": 10}
FIRST_WORDS = ("unusual value", "unusual combination", "missing", "unseen category")


def bundled(name: str) -> pd.DataFrame:
    data = load_breast_cancer(as_frame=True) if name == "breast cancer" else load_wine(as_frame=True)
    return data.data[data.target == 1] if name == "breast cancer" else data.data


def shop(n: int, seed: int) -> pd.DataFrame:
    """Prices that follow from sizes, two categories, gaps in one column."""
    rng = np.random.default_rng(seed)
    size = rng.normal(10.0, 2.0, size=n)
    table = pd.DataFrame(
        {
            "size": size,
            "price": 3.0 * size + rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], size=n),
            "days": rng.poisson(5.0, size=n),
            "note": rng.choice(["a", "b"], size=n),
        }
    )
    table.loc[rng.random(n) < 0.2, "note"] = None
    return table


@pytest.fixture(scope="module")
def shop_detector(make_detector: Make) -> PTAD:
    return make_detector(config=QUICK).fit(shop(600, 0))


def check_sums(found: Explanation, scores: Rows) -> None:
    assert np.array_equal(found.score, scores)
    assert np.allclose(found.contribution_values.sum(axis=1), scores, rtol=1e-6, atol=1e-6)
    total = found.percentage_values.sum(axis=1)
    assert (found.percentage_values >= 0.0).all() and (np.isclose(total, 100.0) | (total == 0.0)).all()


@pytest.mark.parametrize("name", ["breast cancer", "wine"])
def test_a_planted_cell_is_named_first(make_detector: Make, name: str) -> None:
    """One cell of every new row is moved two ranges of its column beyond its end."""
    table = bundled(name)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(table))
    train, new = table.iloc[order[:120]], table.iloc[order[120:]].copy().reset_index(drop=True)
    changed = rng.integers(table.shape[1], size=len(new))
    for i, j in enumerate(changed):
        column = train.iloc[:, j]
        new.iloc[i, j] = column.max() + (column.max() - column.min())
    found = make_detector(config=QUICK).fit(train).explain(new)
    names = [table.columns[j] for j in changed]
    first = np.mean([top[0] == wanted for top, wanted in zip(found.top(1), names, strict=True)])
    three = np.mean([wanted in top for top, wanted in zip(found.top(3), names, strict=True)])
    assert first >= 0.95 and three >= 0.99


@pytest.mark.parametrize("name", ["breast cancer", "wine"])
def test_what_was_observed_is_never_what_was_expected_of_the_first_column(make_detector: Make, name: str) -> None:
    table = bundled(name)
    found = make_detector(config=QUICK).fit(table.iloc[:100]).explain(table.iloc[100:])
    leading = [top[0] for top in found.top(1)]
    for i, column in enumerate(leading):
        observed, expected = found.observed[column].iloc[i], found.expected[column].iloc[i]
        assert not np.isclose(float(observed), float(expected), rtol=1e-6, atol=0.0), (i, column)


def test_a_column_with_its_expected_value_adds_nothing_while_others_add_something(shop_detector: PTAD) -> None:
    found = shop_detector.explain(shop(80, 1))
    alike = found.observed.astype(str).to_numpy() == found.expected.astype(str).to_numpy()
    positive = found.contribution_values > 0.0
    others_add = (positive & ~alike).any(axis=1)[:, None]
    assert (alike & others_add).any() and not (alike & others_add & positive).any()


def test_contributions_add_up_to_the_score_and_percentages_to_100(shop_detector: PTAD) -> None:
    table = shop(80, 1)
    table.loc[0, "price"], table.loc[1, "colour"], table.loc[2, "days"] = 900.0, "violet", None
    check_sums(shop_detector.explain(table), shop_detector.anomaly_score(table))


def test_terms_of_an_explanation_are_the_term_scores(shop_detector: PTAD) -> None:
    table = shop(30, 1)
    found, terms = shop_detector.explain(table), shop_detector.term_scores(table)
    assert list(found.terms.columns) == list(terms)
    assert all(np.allclose(found.terms[name], values) for name, values in terms.items())


def test_an_unseen_category_is_flagged_and_named_first(shop_detector: PTAD) -> None:
    table = shop(100, 2)
    table["colour"] = "violet"
    assert shop_detector.false_alarm_rate_ == 0.01
    assert (shop_detector.predict(table) == -1).mean() >= 0.8
    found = shop_detector.explain(table)
    assert np.mean([top[0] == "colour" for top in found.top(1)]) >= 0.95
    assert set(found.reasons["colour"]) == {"unseen category"}
    assert set(found.observed["colour"]) == {"violet"} and set(found.expected["colour"]) <= {"red", "green", "blue"}


def test_several_unseen_categories_in_one_row_are_flagged(shop_detector: PTAD) -> None:
    table = shop(50, 3)
    table["colour"], table["note"] = "violet", "z"
    assert (shop_detector.predict(table) == -1).all()
    assert all(set(top) == {"colour", "note"} for top in shop_detector.explain(table).top(2))


def test_a_gap_in_a_column_without_gaps_is_named_as_missing(shop_detector: PTAD) -> None:
    table = shop(60, 4)
    table["price"] = np.nan
    found = shop_detector.explain(table)
    assert np.mean([top[0] == "price" for top in found.top(1)]) >= 0.9
    assert set(found.reasons["price"]) == {"missing"}
    assert np.isfinite(found.expected["price"].to_numpy(dtype=float)).all()


def test_a_gap_where_gaps_are_usual_flags_no_more_rows_than_the_rate(shop_detector: PTAD) -> None:
    table = shop(200, 5)
    table["note"] = None
    assert (shop_detector.predict(table) == -1).mean() < 0.05


def test_a_combination_that_never_occurs_names_both_columns(make_detector: Make) -> None:
    """Both values are usual; together they never occurred."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Rome"], size=600)
    country = np.where(city == "Oslo", "Norway", "Italy")
    table = pd.DataFrame({"city": city, "country": country, "x": rng.normal(size=600), "y": rng.normal(size=600)})
    new = pd.DataFrame({"city": ["Oslo"] * 20, "country": ["Italy"] * 20, "x": rng.normal(size=20), "y": 0.1})
    model = make_detector(config=QUICK).fit(table)
    found = model.explain(new)
    assert (model.predict(new) == -1).all()
    assert np.mean([set(top) == {"city", "country"} for top in found.top(2)]) >= 0.9
    assert set(found.reasons["city"]) <= {"unusual combination with country", "unusual value"}


def test_an_unusual_value_is_called_so(shop_detector: PTAD) -> None:
    table = shop(20, 6)
    table["days"] = 400
    found = shop_detector.explain(table)
    assert all(top[0] == "days" for top in found.top(1))
    assert all(reason.startswith("unusual") for reason in found.reasons["days"])
    assert (found.expected["days"] < 20).all()


def test_every_reason_is_one_of_the_words(shop_detector: PTAD) -> None:
    table = shop(40, 7)
    table.loc[3] = [None] * 5
    reasons = shop_detector.explain(table).reasons
    assert all(str(cell).startswith(FIRST_WORDS) for name in reasons for cell in reasons[name])


def test_expected_values_are_in_the_units_and_categories_of_the_table(shop_detector: PTAD) -> None:
    table = shop(40, 8)
    expected = shop_detector.explain(table).expected
    assert set(expected["colour"]) <= {"red", "green", "blue"}
    assert expected["price"].between(0, 60).all() and expected["days"].dtype.kind == "i"


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_explanations_come_in_the_library_of_the_rows(shop_detector: PTAD, library: str) -> None:
    frame = shop(12, 9)
    frame.loc[0, "colour"] = "violet"
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    table: Any = {"pandas": frame, "polars": pl.from_arrow(arrow), "arrow": arrow}[library]
    found, as_pandas = shop_detector.explain(table), shop_detector.explain(frame)
    assert np.array_equal(found.contribution_values, as_pandas.contribution_values)
    assert found.top(2) == as_pandas.top(2)
    for name in ("contributions", "observed", "expected", "reasons"):
        part = getattr(found, name)
        assert type(part) is type(table), name
        assert nw.from_native(part, eager_only=True).columns == list(frame.columns)
    assert nw.from_native(found.reasons, eager_only=True)["colour"].to_list() == as_pandas.reasons["colour"].tolist()


def test_arrays_are_explained_as_arrow_tables(detector: PTAD, rows: Rows) -> None:
    found = detector.explain(rows[:4] + 9.0)
    assert isinstance(found.contributions, pa.Table) and found.contributions.column_names == ["x0", "x1", "x2", "x3"]
    assert found.names == ("x0", "x1", "x2", "x3")
    check_sums(found, detector.anomaly_score(rows[:4] + 9.0))


def test_an_index_of_pandas_is_kept(shop_detector: PTAD) -> None:
    table = shop(3, 1)
    table.index = ["x", "y", "z"]
    assert shop_detector.explain(table).contributions.index.tolist() == ["x", "y", "z"]


def test_a_row_is_explained_alike_alone_and_in_a_batch(shop_detector: PTAD) -> None:
    table = shop(25, 1)
    together = shop_detector.explain(table)
    for i in (0, 7, 24):
        alone = shop_detector.explain(table.iloc[[i]])
        assert np.array_equal(alone.contribution_values[0], together.contribution_values[i])
        assert alone.reasons.iloc[0].tolist() == together.reasons.iloc[i].tolist()


def test_dates_and_text_are_explained_as_columns(make_detector: Make) -> None:
    rng = np.random.default_rng(0)

    def table(n: int) -> pd.DataFrame:
        moment = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(10**6, size=n), unit="s")
        return pd.DataFrame({"moment": moment, "name": [f"n {i % 9}" for i in range(n)], "x": rng.normal(size=n)})

    model = make_detector(config=QUICK, types={"name": "text"}).fit(table(300))
    new = table(10)
    new["moment"] = pd.Timestamp("2031-01-01")
    found = model.explain(new)
    assert found.names == ("moment", "name", "x") and all(top[0] == "moment" for top in found.top(1))
    assert (found.expected["moment"] < pd.Timestamp("2024-02-01")).all()
    check_sums(found, model.anomaly_score(new))


def recorded(n: int, seed: int) -> pd.DataFrame:
    """Values as people write them down: one decimal, whole numbers among floats, minutes, days."""
    rng = np.random.default_rng(seed)
    size = np.round(rng.uniform(0.0, 10.0, size=n), 1)
    minutes, days = rng.integers(60 * 24 * 30, size=n), rng.integers(30, size=n)
    return pd.DataFrame(
        {
            "size": size,
            "price": np.round(2.0 * size + rng.normal(0.0, 0.1, size=n), 2),
            "count": rng.poisson(20.0, size=n).astype(float),
            "sold": pd.Timestamp("2024-01-01 08:00") + pd.to_timedelta(minutes, unit="min"),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
        }
    )


def test_expected_values_are_as_exact_as_the_training_rows(make_detector: Make) -> None:
    table = recorded(300, 0)
    expected = make_detector(config=QUICK).fit(table).explain(recorded(60, 1)).expected
    for name, decimals in (("size", 1), ("price", 2), ("count", 0)):
        assert np.array_equal(expected[name].round(decimals), expected[name])
        assert expected[name].nunique() > 5  # they are told apart, too
    assert (expected["sold"] == expected["sold"].dt.floor("min")).all()
    assert (expected["day"] == expected["day"].dt.floor("D")).all()


def test_an_outlying_number_is_compared_with_rows_like_the_rest_of_its_row(make_detector: Make) -> None:
    table = recorded(300, 0)
    model = make_detector(config=QUICK).fit(table)
    rows = table[:2].assign(size=[1.0, 9.0], price=[2.0, 18.0])
    usual, outlying = model.explain(rows), model.explain(rows.assign(price=[1000.0, -1000.0]))
    assert np.array_equal(outlying.score, model.anomaly_score(rows.assign(price=[1000.0, -1000.0])))
    low, high = outlying.expected["price"]
    assert low < 9.0 < high  # and not both at the edge that is nearer to them: 20 and 0
    assert abs(low - 2.0) < 8.0 and abs(high - 18.0) < 8.0 and usual.score.max() < outlying.score.min()


def test_a_number_that_never_varied_is_the_reason_when_it_does(make_detector: Make) -> None:
    """Also if it changes by little, or where all others are multiples of 60."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=100), np.full(100, 5.0), 60.0 * rng.integers(1, 4, size=100)])
    model = make_detector(config=QUICK).fit(rows)
    new = np.repeat(rows[:1], 3, axis=0)
    new[[0, 1, 2], [1, 1, 2]] = [9.0, 5.001, 75.0]
    found = model.explain(new)
    assert [row[0] for row in found.top(1)] == ["x1", "x1", "x2"]
    assert found.expected["x1"].to_pylist() == [5.0] * 3


def test_steps_of_the_largest_numbers_overflow_without_a_warning() -> None:
    reference = Reference(np.arange(50.0)[:, None] / 10.0, Features.numeric(1), ReferenceSettings())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reference.resolution(np.array([[1e308], [4.9]])).tolist() == [[0.0], [0.05]]


def test_values_less_than_half_a_recorded_step_apart_read_alike() -> None:
    n = np.arange(50.0)
    rows = np.column_stack([60.0 * n + 31.0, 86_400.0 * n, n / 10.0, np.sqrt(n), np.where(n < 9, np.nan, n)])
    reference = Reference(rows, Features.numeric(5), ReferenceSettings())
    assert reference.resolution(rows[20:21]).tolist() == [[30.0, 43_200.0, 0.05, 0.0, 0.5]]
    assert not reference.resolution(rows[20:21] + np.array([20.0, 3_600.0, 0.02, 1.0, 0.3])).any()
    shown = reference.as_recorded(np.array([[100.0, 50_000.0, 0.26, 0.123456789, 3.4]]))
    assert shown.tolist() == [[91.0, 86_400.0, 0.3, 0.123456789, 3.0]]
    assert reference.is_outside(np.array([[31.0, -1.0, 5.0, np.nan, 8.0]])).tolist() == [
        [False, True, True, False, True]
    ]
