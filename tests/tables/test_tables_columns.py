"""Numbers, dates and text of one column as features."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small_tables import bits

from ptad.errors import DataError
from ptad.tables import Schema, fit_schema


def test_new_and_repeated_text_have_different_features():
    repeated = pa.table({"t": [f"value {i % 150}" for i in range(450)]})
    free = pa.table({"t": [f"value {i if i % 9 else 1}" for i in range(450)]})
    probe = pa.table({"t": ["never written before"]})
    for table, new in ((repeated, 0.0), (free, 8 / 9)):
        schema = fit_schema(table)
        assert schema.types == {"t": "text"}
        place = schema.encoded_names.index("t: new")
        assert schema.encode(probe)[0, place] == 1.0
        assert schema.encode(table)[:, place].mean() == pytest.approx(new, abs=0.01)


def test_features_of_text_are_bounded():
    words = [f"{i:x}" * (i % 40) + "é" for i in range(3000)] + ["again"] * 30
    schema = fit_schema(pa.table({"t": words}))
    assert len(schema.features) == 14 and len(schema.to_json()["columns"][0]["counts"]) <= 1000


def test_cycles_only_where_they_vary():
    days = pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=7 * i) for i in range(30)])  # Mondays of half a year
    noon = pa.array([dt.datetime(2020, 1, 1, 12) + dt.timedelta(days=50 * i) for i in range(30)], pa.timestamp("s"))
    schema = fit_schema(pa.table({"monday": days, "noon": noon}))
    assert schema.encoded_names[0] == "monday: time"
    assert [n for n in schema.encoded_names if n.startswith("noon")] == [
        "noon: time",
        "noon: sine of week",
        "noon: cosine of week",
        "noon: sine of year",
        "noon: cosine of year",
    ]
    assert schema.features.column.tolist() == [0, 1, 1, 1, 1, 1]


def test_cycle_values():
    when = [dt.datetime(2024, 1, 1, 6), dt.datetime(2024, 1, 2, 18)] * 20
    schema = fit_schema(pa.table({"t": pa.array(when, pa.timestamp("us"))}))
    sine = schema.encode(pa.table({"t": pa.array(when[:2], pa.timestamp("us"))}))[:, 1]
    np.testing.assert_allclose(sine, [1.0, -1.0], atol=1e-12)  # six and eighteen o'clock


def test_week_begins_on_monday_and_the_year_on_its_first_day():
    days = [dt.date(2023, 1, 1) + dt.timedelta(days=9 * i) for i in range(80)]
    schema = fit_schema(pa.table({"d": days}))
    place = {n: i for i, n in enumerate(schema.encoded_names)}
    x = schema.encode(pa.table({"d": [dt.date(2024, 1, 1), dt.date(2024, 7, 2)]}))  # a Monday, half a year later
    assert x[0, place["d: sine of week"]] == 0.0 and x[0, place["d: cosine of week"]] == 1.0
    assert x[0, place["d: sine of year"]] == 0.0 and x[0, place["d: cosine of year"]] == 1.0
    np.testing.assert_allclose(x[1, [place["d: sine of year"], place["d: cosine of year"]]], [0.0, -1.0], atol=1e-12)


def test_text_that_occurred_once_is_encoded_as_unseen():
    table = pa.table({"t": [f"value {i:03d}" for i in range(40)] + [f"twice {i % 30:03d}" for i in range(60)]})
    schema = fit_schema(table)
    once, never, twice = schema.encode(pa.table({"t": ["value 007", "never 007", "twice 007"]}))[:, :2]
    assert once.tolist() == never.tolist() and (twice != once).all()


def test_dates_out_of_range_are_clipped():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 100) for i in range(400)] + [
        dt.date(9999, 12, 31),
        dt.date(1, 1, 1),
    ]
    schema = fit_schema(pa.table({"d": days}))
    x = schema.encode(pa.table({"d": [dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(2024, 1, 1)]}))
    span = schema.columns[0].last - schema.columns[0].first
    assert np.isfinite(x).all() and x[0, 0] == span and x[1, 0] == 0 and 0.2 * span < x[2, 0] < 0.8 * span
    absurd = pa.table({"d": pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("s"))})
    moments = fit_schema(pa.table({"d": pa.array(days, pa.date32()).cast(pa.timestamp("s"))}))
    assert np.isfinite(moments.encode(absurd)).all()
    assert len(moments.observed(absurd)["d"]) == 2


def test_zones_must_agree():
    naive = pa.table({"t": pa.array(range(0, 10**6, 10**4), pa.timestamp("s"))})
    zoned = pa.table({"t": pa.array(range(0, 10**6, 10**4), pa.timestamp("s", "Europe/Berlin"))})
    schema = fit_schema(zoned)
    assert np.isfinite(schema.encode(zoned)).all()
    shown, back = schema.observed(zoned)["t"], schema.decode(schema.encode(zoned))["t"]
    assert shown[3].isoformat() == "1970-01-01T08:20:00+00:00"  # both in UTC
    assert abs(back[3] - shown[3]) <= dt.timedelta(seconds=1)
    for trained, given in ((naive, zoned), (zoned, naive)):
        with pytest.raises(DataError, match=r"'t'.*zone"):
            fit_schema(trained).encode(given)


def test_integers_beyond_2_to_53_keep_their_differences():
    base = 2**62
    values = np.array([base + v for v in (0, 1, 2, 3, 3, 2)])
    for table in (pa.table({"i": values}), values[:, None], pa.table({"i": values.astype(np.uint64)})):
        schema = fit_schema(table)
        x = schema.encode(table)
        assert x.ravel().tolist() == [0, 1, 2, 3, 3, 2]
        assert next(iter(schema.decode(x).values())).tolist() == values.tolist()
        again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
        assert np.array_equal(bits(again.encode(table)), bits(x))
    extreme = pa.table({"i": np.array([-(2**63), 2**63 - 1, 0, 0])})
    np.testing.assert_allclose(fit_schema(extreme).encode(extreme).ravel(), [0, 2.0**64, 2.0**63, 2.0**63])
    top = pa.table({"i": np.array([2**64 - 1, 2**64 - 2, 2**64 - 2], dtype=np.uint64)})
    schema = fit_schema(top)
    assert schema.decode(schema.encode(top))["i"].tolist() == [2**64 - 1, 2**64 - 2, 2**64 - 2]


def test_huge_and_tiny_numbers():
    x = np.array([[1e308, 1e-300], [-1e308, 3e-300], [0.0, 2e-300]])
    assert np.array_equal(fit_schema(x).encode(x), x)
    assert fit_schema(np.array([[0.0], [1.0]])).encode(np.array([[1e300]])) == 1e300


def test_expected_moments_have_the_type_of_observed_ones():
    days = [dt.date(2024, 1, 1 + i) for i in range(24)]
    times = pa.array(range(0, 24 * 7000, 7000), pa.timestamp("s", "Europe/Berlin"))
    table = pa.table({"day": days, "at": times})
    schema = fit_schema(table)
    observed, expected = schema.observed(table), schema.decode(schema.encode(table))
    assert expected["day"].tolist() == observed["day"] == days
    assert max(abs(a - b) for a, b in zip(observed["at"], expected["at"], strict=True)) <= dt.timedelta(seconds=1)


def test_text_counted_without_some_rows() -> None:
    """Rows and schema are those of a fit without the rows that are held out."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"name": [f"customer {i}" for i in rng.integers(40, size=120)], "size": rng.normal(size=120)})
    table.loc[::17, "name"] = None
    types = {"name": "text"}
    schema = fit_schema(table, types=types)
    rows, held = schema.encode(table), np.arange(0, 120, 5)
    text = schema.counted(table)
    assert text is not None
    others = fit_schema(table.drop(index=held), types=types)
    assert np.array_equal(text.rows(rows, held), others.encode(table), equal_nan=True)
    assert np.array_equal(text.without(rows, held).encode(table), others.encode(table), equal_nan=True)
    assert fit_schema(table[["size"]]).counted(table) is None
