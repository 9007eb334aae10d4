"""Encoding of the types of columns, and decoding."""

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from small_tables import bits

from ptad.errors import BundleError, DataError, SettingError
from ptad.tables import Schema, fit_schema, same_kind


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


def test_column_types(schema):
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


def test_encoding_does_not_depend_on_other_rows(table):
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


def test_wrong_parameters_are_an_error(table):
    with pytest.raises(SettingError, match=r"'size'.*'colour'"):
        fit_schema(table, types={"size": "colour"})
    for setting in ({"drop": ["nope"]}, {"only": ["nope"]}, {"types": {"nope": "text"}}):
        with pytest.raises(DataError, match="no column 'nope'"):
            fit_schema(table, **setting)


def test_choice_of_columns(table):
    assert fit_schema(table, only=["count", "flag"]).names == ("count", "flag")
    schema = fit_schema(table, drop=["size"], only=["count", "flag", "took", "size"])
    assert schema.names == ("count", "flag", "took")
    assert schema.excluded["size"] == "dropped by the user"
    assert schema.excluded["color"] == "not among the columns chosen by the user"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # columns excluded in training are neither needed nor extra
        schema.encode(table)
        schema.encode(table.select(["count", "flag", "took"]))


def test_results_are_in_the_library_of_the_table():
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


def test_constant_column_is_kept_if_its_type_is_chosen():
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
    assert schema.names == ("x",) and schema.excluded["at"] == "constant: '2024-01-01 00:00:00'"
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


@pytest.mark.parametrize("parameter", ["missing", "drop", "only"])
def test_a_text_is_not_a_list_of_letters(parameter):
    with pytest.raises(
        SettingError, match=rf"'{parameter}' parameter must be a list of text: write \['NA'\], not 'NA'"
    ):
        fit_schema(pa.table({"N": [1, 2], "A": [3, 4]}), **{parameter: "NA"})


def test_array_of_floats_is_encoded_like_a_table():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((50, 3)) < 0.1, np.nan, rng.normal(size=(50, 3)))
    schema = fit_schema(np.c_[rows, np.ones(50)])  # the last column is excluded
    new = np.c_[rng.normal(size=(5, 3)), np.full(5, 2.0)]
    for dtype in (np.float64, np.float32):
        plain = new.astype(dtype)
        assert np.array_equal(schema.encode(plain), schema.encode(plain.astype(object)))
    new[3, 1] = np.inf
    with pytest.raises(DataError, match=r"contains infinity.*column 'x1', row 3"):
        schema.encode(new)
