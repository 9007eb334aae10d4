"""Which type a column has, and which columns are excluded."""

import datetime as dt
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from small_tables import two

from ptad.errors import BundleError, DataError
from ptad.tables import Schema, fit_schema
from ptad.tables.exclusion import Exclusion

N = 24


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["3", " 4.5", "-1e3", None] * 6, "numeric"),
        (["nan", "1", "2"] * 8, "numeric"),
        (["00501", "10001", "94105"] * 8, "categorical"),
        (["0", "0.5", "1"] * 8, "numeric"),
        (["1", "2", "x"] * 8, "categorical"),
        ([f"{i % 120:03d}x" for i in range(480)], "text"),
        ([f"v{i % 70}" for i in range(480)], "categorical"),
        ([f"v{i}" for i in range(19)], "text"),
        ([f"v{i}" for i in range(9)], "categorical"),
        (["2024-01-31", "2024-02-01T10:00"] * 12, "datetime"),
        (["2024-01-31T10:00Z", "2024-02-01T10:00+02:00"] * 12, "datetime"),
        (["2024-02-31", "2024-02-01"] * 12, "categorical"),
        ([decimal.Decimal("1.5"), decimal.Decimal("2.5")] * 12, "numeric"),
        ([True, False, None] * 8, "boolean"),
    ],
)
def test_type(values, type_):
    schema = fit_schema(two(values))
    assert schema.types["c"] == type_
    x = schema.encode(two(values))
    assert np.isfinite(x[:, schema.features.column == 1]).any() and np.isfinite(x[0]).sum() >= 1


AMOUNTS = np.random.default_rng(0).lognormal(11, 1, 200).astype(int)


IDENTIFIERS = {
    "in the order of the rows": np.sort(AMOUNTS),
    "counting down": np.sort(AMOUNTS)[::-1],
    "shuffled": np.random.default_rng(1).permutation(200),
    "drawn from a range": np.random.default_rng(2).choice(10**9, 200, replace=False),
    "a sample of running numbers": np.random.default_rng(3).choice(15_000, 200, replace=False),
    "in two blocks": np.random.default_rng(4).permutation([*range(1000, 1150), *range(900_000, 900_050)]),
    "moments": 1_700_000_000_000 + np.random.default_rng(5).permutation(np.cumsum(AMOUNTS)),
}


def test_distinct_amounts_are_not_identifiers():
    assert len(set(AMOUNTS.tolist())) == len(AMOUNTS)
    schema = fit_schema(two(AMOUNTS))
    assert schema.types["c"] == "numeric"
    (note,) = schema.notes
    assert note.doubtful and "taken for an amount" in note.text and str(note).endswith("fit with drop=['c'].")
    assert fit_schema(two(AMOUNTS), types={"c": "numeric"}).notes == ()


@pytest.mark.parametrize("values", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_consecutive_or_spread_integers_are_identifiers(values):
    assert fit_schema(two(values)).excluded == {"c": "identifier: every value is different"}


def test_declared_categories_stay_categories():
    codes = pd.DataFrame({"c": pd.Categorical([1, 2, 3] * 8), "g": range(0, 48, 2)})
    schema = fit_schema(codes, types={"g": "numeric"})
    assert schema.types == {"c": "categorical", "g": "numeric"}
    assert np.array_equal(schema.encode(codes), schema.encode(codes.astype({"c": int})))
    assert np.array_equal(schema.encode(codes), schema.encode(codes.astype({"c": float})))
    frame = pl.DataFrame({"c": pl.Series(["a", "b"] * 12, dtype=pl.Enum(["a", "b", "never"]))})
    assert fit_schema(frame).columns[0].values == ("a", "b")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([7] * N, "constant: 7"),
        (["x", None] * 12, "constant: 'x'"),
        ([0.1] * N, "constant: 0.1"),
        ([None] * N, "all values are missing"),
        ([float("nan")] * N, "all values are missing"),
        (list(range(N)), "identifier: every value is different"),
        ([(i * 37) % 101 for i in range(N)], "identifier: every value is different"),
        ([f"id-{i}" for i in range(N)], "identifier: every value is different"),
        ([str(i) for i in range(N)], "identifier: every value is different"),
    ],
)
def test_columns_without_information_are_excluded(values, reason):
    schema = fit_schema(two(values))
    assert schema.names == ("good",) and schema.excluded == {"c": reason}
    assert schema.encode(two([None] * N)).shape == (N, 1)  # and never looked at again


@pytest.mark.parametrize(
    "values",
    [
        [i / 7 for i in range(N)],
        [f"{i}.5" for i in range(N)],
        list(range(19)),
        [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i) for i in range(N)],
        [f"2024-01-{i + 1:02d}" for i in range(N)],
    ],
)
def test_not_identifiers(values):
    assert "c" in fit_schema(two(values)).names


def test_identifier_can_be_kept():
    assert fit_schema(two(list(range(N))), types={"c": "numeric"}).types["c"] == "numeric"


def test_error_if_all_columns_are_excluded_lists_the_reasons():
    with pytest.raises(DataError, match=r"No column.*'a' \(constant: 1\).*'b' \(identifier"):
        fit_schema(pa.table({"a": [1] * N, "b": list(range(N))}))


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [
        (7, 7.0, 8),
        (0.1, "0.1", 0.2),
        ("x", "x", "X"),
        ("007", "007", "7"),
        (True, True, False),
        (dt.date(2024, 1, 2),) * 2 + (5,),
    ],
)
def test_a_constant_is_kept_with_its_type(value, same, other):
    exclusion = Exclusion.constant(value)
    assert Exclusion.from_json(json.loads(json.dumps(exclusion.to_json(), allow_nan=False))) == exclusion
    assert exclusion.is_constant(same) and not exclusion.is_constant(other)


@pytest.mark.parametrize(
    "entry",
    [
        "constant: 7",
        {"code": "constant", "value": None},
        {"code": "dropped", "value": 7},
        {"code": "unlucky", "value": None},
        {"code": "constant", "value": [7]},
        {"code": "constant", "value": float("inf")},
        {"code": "dropped"},
    ],
)
def test_other_reasons_in_a_schema_are_refused(entry):
    state = fit_schema(two([7] * N)).to_json()
    state["excluded"]["c"] = entry
    with pytest.raises(BundleError, match="damaged"):
        Schema.from_json(state)
