"""What each type of column becomes, and the way back."""

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ptad.errors import BundleError, DataError, SettingError
from ptad.tables import Schema, fit_schema, same_kind


def bits(x):
    return np.ascontiguousarray(x).view(np.uint64)


def mixed_table(n=60):
    rng = np.random.default_rng(3)
    start = dt.datetime(2023, 1, 1)
    return pa.table(
        {
            "size": pa.array([None if i == 4 else float(v) for i, v in enumerate(rng.normal(5, 2, n))]),
            "count": pa.array(rng.integers(0, 9, n)),
            "flag": pa.array([None if i == 2 else bool(i % 3) for i in range(n)]),
            "color": pa.array([None if i == 7 else ["red", "green", "blue"][i % 3] for i in range(n)]),
            "comment": pa.array([f"order {i % 31} of {'xyz' * (i % 31 % 5)}" for i in range(n)]),
            "when": pa.array([start + dt.timedelta(hours=37 * i, seconds=i) for i in range(n)], pa.timestamp("us")),
            "day": pa.array([start.date() + dt.timedelta(days=11 * i) for i in range(n)]),
            "at": pa.array([dt.time(i % 24, i % 60) for i in range(n)]),
            "took": pa.array([dt.timedelta(seconds=i % 7) for i in range(n)]),
        }
    )


@pytest.fixture(scope="module")
def table():
    return mixed_table()


@pytest.fixture(scope="module")
def schema(table):
    return fit_schema(table)


def test_types_are_found(schema):
    assert schema.types == {
        "size": "numeric",
        "count": "numeric",
        "flag": "boolean",
        "color": "categorical",
        "comment": "text",
        "when": "datetime",
        "day": "date",
        "at": "time",
        "took": "duration",
    }
    assert schema.excluded == {}


def test_repr_is_short(schema):
    assert repr(schema) == f"Schema(9 columns as {len(schema.features)} features)"


def test_shape_type_and_features(schema, table):
    x = schema.encode(table)
    features = schema.features
    assert x.dtype == np.float64 and x.flags.c_contiguous and x.shape == (60, len(features))
    assert features.n_columns == 9 and len(schema.encoded_names) == len(features) == len(features.column)
    color = schema.names.index("color")
    assert features.n_categories[features.column == color].tolist() == [3]
    assert len(features.categories) == 1 and len(features.numbers) == len(features) - 1
    assert schema.missing_rate.shape == (9,) and schema.missing_rate[color] == 1 / 60
    assert schema.missing_rate[schema.names.index("count")] == 0
    assert np.isnan(x[7, features.starts[color]]) and np.isnan(x).sum() == 3


def test_nothing_is_scaled(schema, table):
    """Numbers are what they are, truth values 0 and 1, durations seconds, categories codes in sorted order."""
    x = schema.encode(table)
    first = dict(zip(schema.names, schema.features.starts.tolist(), strict=True))
    sizes = np.array([np.nan if v is None else v for v in table["size"].to_pylist()])
    assert np.array_equal(x[:, first["size"]], sizes, equal_nan=True)
    assert x[:, first["count"]].tolist() == table["count"].to_pylist()
    assert x[:4, first["flag"]].tolist()[:2] == [0.0, 1.0] and np.isnan(x[2, first["flag"]])
    assert x[:3, first["color"]].tolist() == [2.0, 1.0, 0.0]  # blue, green, red
    assert x[:8, first["took"]].tolist() == [0, 1, 2, 3, 4, 5, 6, 0]


def test_encoding_depends_on_no_other_row(table):
    """The distribution of the training rows is for the terms: other rows of the same columns encode alike."""
    half = fit_schema(table.slice(0, 30), types={"comment": "text"})
    numeric = ["size", "count", "flag", "took"]
    first = [half.features.starts[half.names.index(name)] for name in numeric]
    whole = fit_schema(table)
    again = [whole.features.starts[whole.names.index(name)] for name in numeric]
    assert np.array_equal(half.encode(table)[:, first], whole.encode(table)[:, again], equal_nan=True)


def test_rows_are_encoded_one_by_one(schema, table):
    x = schema.encode(table)
    for i in range(table.num_rows):
        assert np.array_equal(bits(schema.encode(table.slice(i, 1))), bits(x[i : i + 1]))
    order = np.random.default_rng(0).permutation(table.num_rows)
    assert np.array_equal(bits(schema.encode(table.take(order))), bits(x[order]))


def test_small_blocks_change_nothing(schema, table, monkeypatch):
    whole = schema.encode(table)
    monkeypatch.setattr("ptad.tables.schema.CELLS_AT_ONCE", 100)
    monkeypatch.setattr("ptad.tables.schema_fit.CELLS_AT_ONCE", 100)
    assert np.array_equal(bits(schema.encode(table)), bits(whole))
    assert fit_schema(table).to_json() == schema.to_json()


def test_pandas_polars_and_arrow_agree(schema, table):
    frames = [table.to_pandas(), pl.from_arrow(table)]
    for frame in frames:
        assert fit_schema(frame).to_json() == schema.to_json()
        assert np.array_equal(bits(schema.encode(frame)), bits(schema.encode(table)))
        # and the columns in another order
        assert np.array_equal(bits(schema.encode(frame[list(table.column_names[::-1])])), bits(schema.encode(table)))


def test_json_round_trip_is_exact_and_plain(schema, table):
    state = json.loads(json.dumps(schema.to_json(), allow_nan=False))
    again = Schema.from_json(state)
    assert again.to_json() == schema.to_json()
    assert np.array_equal(bits(again.encode(table)), bits(schema.encode(table)))
    assert again.types == schema.types and again.excluded == schema.excluded


@pytest.mark.parametrize(
    "harm", [lambda s: s.pop("columns"), lambda s: s["columns"][3].pop("values"), lambda s: s.update(version=99)]
)
def test_damaged_schema(schema, harm):
    state = json.loads(json.dumps(schema.to_json()))
    harm(state)
    with pytest.raises(BundleError, match="schema"):
        Schema.from_json(state)


def test_decode_returns_the_table(schema, table):
    back, seen = schema.decode(schema.encode(table)), schema.observed(table)
    assert list(back) == list(seen) == list(schema.names)
    for name in ("count", "flag", "color", "day", "at"):
        pairs = [(b, s) for b, s in zip(back[name], seen[name], strict=True) if s is not None]
        assert len(pairs) >= 59 and all(b == s for b, s in pairs), name
    present = [i for i, v in enumerate(seen["size"]) if v is not None]
    np.testing.assert_allclose(back["size"][present], np.array(seen["size"], dtype=float)[present], rtol=1e-5)
    assert back["count"].dtype == np.int64 and back["when"].dtype == "datetime64[s]"
    late = np.abs(back["when"] - np.array(seen["when"], dtype="datetime64[us]"))
    assert late.max() < np.timedelta64(1, "s")
    assert abs(back["took"][3] - np.timedelta64(3, "s")) < np.timedelta64(10, "us")
    known = [(b, s) for b, s in zip(back["comment"], seen["comment"], strict=True) if b is not None]
    assert all(b == s for b, s in known)
    assert seen["size"][4] is None and seen["color"][7] is None


def test_decode_checks_the_width(schema):
    with pytest.raises(DataError, match=str(len(schema.features))):
        schema.decode(np.zeros((2, 3)))


def test_unseen_categories_have_the_next_code(table, schema):
    odd = schema.encode(table.set_column(3, "color", pa.array(["violet", "Red", None] * 20)))
    color = schema.features.starts[schema.names.index("color")]
    assert odd[:2, color].tolist() == [3.0, 3.0] and np.isnan(odd[2, color])
    assert schema.decode(odd)["color"].tolist() == [None] * 60


def test_new_text_is_told_from_repeated_text():
    repeated = pa.table({"t": [f"value {i % 150}" for i in range(450)]})
    free = pa.table({"t": [f"value {i if i % 9 else 1}" for i in range(450)]})
    probe = pa.table({"t": ["never written before"]})
    for table, new in ((repeated, 0.0), (free, 8 / 9)):
        schema = fit_schema(table)
        assert schema.types == {"t": "text"}
        place = schema.encoded_names.index("t: new")
        assert schema.encode(probe)[0, place] == 1.0
        assert schema.encode(table)[:, place].mean() == pytest.approx(new, abs=0.01)


def test_text_stays_bounded():
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


def test_text_seen_once_reads_like_text_never_seen():
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


def test_constant_column_of_an_array_is_kept():
    x = np.full((7, 2), 0.1)
    x[:, 1] = np.arange(7)
    schema = fit_schema(x)
    assert schema.names == ("x0", "x1") and np.array_equal(schema.encode(x), x)


def test_array_forms_agree():
    x = np.arange(12.0).reshape(4, 3)
    schema = fit_schema(x)
    expected = schema.encode(x)
    for other in (
        x.astype(object),
        x.astype(int),
        x.tolist(),
        x.astype(str),
        x.astype(np.float16),
        np.asfortranarray(x),
    ):
        assert np.array_equal(schema.encode(other), expected)
        assert np.array_equal(fit_schema(other).encode(x), expected)
    holes = x.astype(object)
    holes[1, 1], holes[2, 0] = None, pd.NA
    encoded = schema.encode(holes)
    assert np.isnan(encoded[1, 1]) and np.isnan(encoded[2, 0]) and np.isnan(encoded).sum() == 2
    assert schema.encode(x[:0]).shape == (0, 3)


def test_array_against_a_schema_of_a_table(table, schema):
    numeric = table.select(["size", "count"])
    fitted = fit_schema(numeric)
    array = np.column_stack([numeric["size"].to_numpy(), numeric["count"].to_numpy()])
    assert np.array_equal(bits(fitted.encode(array)), bits(fitted.encode(numeric)))
    with pytest.raises(DataError, match="X has 3 features, but PTAD is expecting 2 features"):
        fitted.encode(np.zeros((2, 3)))
    named = table.select(["count", "color"])
    objects = np.array(list(zip(*named.to_pydict().values(), strict=True)), dtype=object)
    fitted = fit_schema(named)
    assert np.array_equal(bits(fitted.encode(objects)), bits(fitted.encode(named)))


def test_settings_are_judged(table):
    with pytest.raises(SettingError, match=r"'size'.*'colour'"):
        fit_schema(table, types={"size": "colour"})
    for setting in ({"drop": ["nope"]}, {"only": ["nope"]}, {"types": {"nope": "text"}}):
        with pytest.raises(DataError, match="no column 'nope'"):
            fit_schema(table, **setting)


def test_choice_of_columns(table):
    assert fit_schema(table, only=["count", "flag"]).names == ("count", "flag")
    schema = fit_schema(table, drop=["size"], numeric_only=True)
    assert schema.names == ("count", "flag", "took")
    assert schema.excluded["size"] == "dropped by the user"
    assert schema.excluded["color"] == "categorical: only numbers are used"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # columns left out in training are neither needed nor extra
        schema.encode(table)
        schema.encode(table.select(["count", "flag", "took"]))


def test_same_kind_comes_back():
    frame = pd.DataFrame({"a": [1, 2]}, index=["r", "s"])
    made = same_kind(frame, {"score": np.array([0.5, 1.5]), "why": np.array(["x", None], dtype=object)})
    assert isinstance(made, pd.DataFrame) and made.index.tolist() == ["r", "s"] and made["score"].tolist() == [0.5, 1.5]
    made = same_kind(
        pl.DataFrame({"a": [1, 2]}), {"score": np.array([0.5, 1.5]), "why": np.array(["x", None], dtype=object)}
    )
    assert isinstance(made, pl.DataFrame) and made.schema == {"score": pl.Float64, "why": pl.String}
    for table in (pa.table({"a": [1, 2]}), np.zeros((2, 1))):
        made = same_kind(table, {"score": np.array([0.5, 1.5])})
        assert isinstance(made, pa.Table) and made["score"].to_pylist() == [0.5, 1.5]


def test_a_column_that_never_varied_is_kept_if_its_type_is_chosen_and_noticed_otherwise():
    n = 24
    values = {
        "valve": 0.0,
        "state": "ok",
        "flag": False,
        "day": dt.date(2024, 1, 1),
        "at": dt.datetime(2024, 1, 1),
        "count": 5,
    }
    table = pa.table({"x": np.arange(n) / 7, **{name: [value] * n for name, value in values.items()}})
    schema = fit_schema(table)
    assert schema.names == ("x",) and schema.excluded["at"] == "constant: 2024-01-01 00:00:00"
    assert schema.changed_constants(table) == {}
    assert schema.changed_constants(table.to_pandas()) == {}  # other types of the same values
    assert schema.changed_constants(table.select(["x"])) == {}
    others = {"valve": 80.0, "state": "broken", "flag": True, "day": dt.date(2025, 1, 1), "count": 6, "at": None}
    new = pa.table({"x": [1.0, 2.0], **{name: [values[name], others[name]] for name in values}})
    assert schema.changed_constants(new) == {name: value for name, value in others.items() if name != "at"}
    assert schema.changed_constants(pa.table({"x": [1.0], "valve": [[1.0]]})) == {"valve": [1.0]}
    types = {"valve": "numeric", "state": "categorical", "flag": "boolean", "day": "date", "count": "numeric"}
    kept = fit_schema(table, types=types)
    assert kept.names == ("x", "valve", "state", "flag", "day", "count")
    apart = kept.encode(new)[1] != kept.encode(new)[0]
    assert set(kept.features.column[apart]) == set(range(6))  # every change is seen


def test_expected_moments_have_the_type_of_observed_ones():
    days = [dt.date(2024, 1, 1 + i) for i in range(24)]
    times = pa.array(range(0, 24 * 7000, 7000), pa.timestamp("s", "Europe/Berlin"))
    table = pa.table({"day": days, "at": times})
    schema = fit_schema(table)
    observed, expected = schema.observed(table), schema.decode(schema.encode(table))
    assert expected["day"].tolist() == observed["day"] == days
    assert max(abs(a - b) for a, b in zip(observed["at"], expected["at"], strict=True)) <= dt.timedelta(seconds=1)


@pytest.mark.parametrize("parameter", ["missing", "drop", "only"])
def test_a_text_is_not_a_list_of_letters(parameter):
    with pytest.raises(
        SettingError, match=rf"'{parameter}' parameter must be a list of text: write \['NA'\], not 'NA'"
    ):
        fit_schema(pa.table({"N": [1, 2], "A": [3, 4]}), **{parameter: "NA"})


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
