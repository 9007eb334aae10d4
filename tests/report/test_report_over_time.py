"""Scores over time: which periods, and what is counted in them, against numpy on all rows at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ptad import DataError
from ptad.report import ReportSettings, write_report
from ptad.report.over_time import FEWEST_ROWS, MOST_PERIODS, QUANTILES, TimeColumn, TimeTally, period_starts
from ptad.report.score_histogram import ScoreScale
from ptad.tables import fit_schema

START = 1_704_067_200  # 2024-01-01, a Monday
SCALE = ScoreScale(0.0, 1.0)


def tally(moments: np.ndarray, scores: np.ndarray, batch: int = 10**9) -> TimeTally:
    made = TimeTally("when", 2.0, SCALE)
    for i in range(0, len(moments), batch):
        part = slice(i, i + batch)
        made.add(moments[part], np.zeros(len(moments[part]), bool), scores[part])
    return made


@pytest.mark.parametrize(
    ("days", "n_rows", "period"),
    [
        (0.02, 3000, "minute"),
        (0.3, 3000, "10 minutes"),
        (2, 3000, "hour"),
        (12, 3000, "6 hours"),
        (50, 3000, "day"),
        (300, 3000, "week"),
        (365 * 4, 3000, "month"),
        (365 * 12, 3000, "quarter"),
        (365 * 40, 9000, "year"),
        (50, 160, "week"),  # a day would have two rows
        (50, 30, None),
        (0, 3000, None),
    ],
)
def test_the_period_follows_the_span_and_the_number_of_rows(days, n_rows, period):
    moments = START + np.linspace(0, days * 86400, n_rows).astype(np.int64)
    content = tally(moments, np.zeros(n_rows), batch=500).content()
    assert content["period"] == period
    rows = [bucket["rows"] for bucket in content["buckets"]]
    assert sum(rows) == (n_rows if period else 0)
    assert len(rows) <= MOST_PERIODS and (not rows or np.median(rows) >= FEWEST_ROWS)


def test_counts_and_quantiles_are_those_of_the_rows_whatever_the_batches():
    rng = np.random.default_rng(0)
    moments = START + rng.integers(0, 40 * 86400, 4000)
    scores = rng.normal(size=4000) + (moments - START) / (20 * 86400)
    whole, pieces = tally(moments, scores).content(), tally(moments, scores, batch=37).content()
    assert whole == pieces and whole["period"] == "day" and len(whole["buckets"]) == 40
    for bucket in whole["buckets"]:
        own = scores[moments // 86400 * 86400 == bucket["time"]]
        assert bucket["rows"] == len(own) and bucket["flagged"] == (own > 2.0).sum()
        exact = np.quantile(own, QUANTILES, method="inverted_cdf")
        np.testing.assert_allclose(bucket["scores"], exact, rtol=0.02, atol=0.02)


def test_weeks_begin_on_monday_and_months_on_the_first():
    moments = pd.date_range("1969-11-03 12:00", "1970-03-01", freq="7h")
    seconds = moments.to_numpy().astype("datetime64[s]").astype(np.int64)
    weeks = pd.to_datetime(period_starts(seconds, "week"), unit="s")
    assert set(weeks.day_of_week) == {0} and ((moments - weeks) < pd.Timedelta(days=7)).all()
    for name, n in (("month", 1), ("quarter", 3), ("year", 12)):
        begins = pd.to_datetime(period_starts(seconds, name), unit="s")
        assert set(begins.day) == {1} and set((begins.month - 1) % n) == {0}
        assert (begins <= moments).all()


def test_many_periods_are_joined_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr("ptad.report.over_time.MOST_COUNTED_PERIODS", 50)
    moments = START + np.arange(0, 400 * 86400, 3600)
    made = tally(moments, np.zeros(len(moments)), batch=100)
    assert made.n_periods <= 50
    assert sum(bucket["rows"] for bucket in made.content()["buckets"]) == len(moments)


def test_a_report_shows_the_used_column_of_dates(model, rows_of, tmp_path):
    table = rows_of(400, 3)
    table.loc[:9, "day"] = pd.NaT
    content = write_report(model, table, tmp_path / "r.html")
    over = content["over_time"]
    assert over["column"] == "day" and over["without"] == 10 and over["period"] == "month"
    assert [bucket["rows"] for bucket in over["buckets"]] == table["day"].dt.month.value_counts(
        sort=False
    ).sort_index().tolist()
    assert sum(bucket["flagged"] for bucket in over["buckets"]) <= content["n_flagged"]


@pytest.mark.parametrize("as_text", [False, True])
def test_another_column_can_be_named_and_later_rows_are_not_moved(model, rows_of, tmp_path, as_text):
    table = rows_of(300, 4)
    when = pd.date_range("2031-05-01", periods=300, freq="h")
    table["when"] = when.astype(str) if as_text else when
    over = write_report(model, table, tmp_path / "r.html", ReportSettings(time="when"))["over_time"]
    assert over["column"] == "when"
    assert pd.Timestamp(over["buckets"][0]["time"], unit="s") == pd.Timestamp("2031-05-01")
    assert sum(bucket["rows"] for bucket in over["buckets"]) == 300
    late = table.assign(day=when)  # far beyond the training rows
    over = write_report(model, late, tmp_path / "r.html")["over_time"]
    assert pd.Timestamp(over["buckets"][-1]["time"], unit="s").year == 2031


def test_a_wrong_time_column_is_named_with_the_remedy(model, table, tmp_path):
    with pytest.raises(DataError, match=r"no time column 'wen'.*'day'.*Name one of them"):
        write_report(model, table, tmp_path / "r.html", ReportSettings(time="wen"))
    with pytest.raises(DataError, match="time column 'city' cannot be read as dates"):  # a category of the model
        write_report(model, table, tmp_path / "r.html", ReportSettings(time="city"))
    table["remark"] = "soon"
    with pytest.raises(DataError, match="time column 'remark' cannot be read as dates"):
        write_report(model, table, tmp_path / "r.html", ReportSettings(time="remark"))


def test_a_column_without_any_date_yet_is_missing(model):
    column = TimeColumn(model.schema_, "later")
    batch = pa.record_batch({"later": pa.array([None, None], pa.string())})
    _, missing = column.read(batch)
    assert missing.all()
    seconds, missing = column.read(pa.record_batch({"later": ["2024-01-01", None]}))
    assert seconds[0] == START and missing.tolist() == [False, True]
    _, missing = TimeColumn(model.schema_, "other").read(pa.record_batch({"other": ["2024-01-01", "2024-01-02", "x"]}))
    assert missing.tolist() == [False, False, True]


def test_a_date_that_cannot_be_read_is_no_date():
    dates = [f"{day:%d.%m.%Y}" for day in pd.date_range("2024-01-01", periods=60)]
    reader = TimeColumn(fit_schema(pa.table({"when": dates})), "when")
    seconds, missing = reader.read(pa.record_batch({"when": ["01.01.2024", "31.02.2024", "k. A.", None]}))
    assert seconds[0] == START and missing.tolist() == [False, True, True, True]
