"""Properties that hold for any table."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ptad.tables import Schema, fit_schema, read_table, write_table

floats = st.none() | st.floats(allow_infinity=False, width=64)
integers = st.none() | st.integers(-(2**63), 2**63 - 1)
texts = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=12)
moments = st.none() | st.datetimes()
columns = st.integers(4, 30).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "always": st.just([float(i % 3) for i in range(n)]),
            "f": st.lists(floats, min_size=n, max_size=n),
            "i": st.lists(integers, min_size=n, max_size=n),
            "t": st.lists(texts, min_size=n, max_size=n),
            "b": st.lists(st.none() | st.booleans(), min_size=n, max_size=n),
            "d": st.lists(moments, min_size=n, max_size=n),
        }
    )
)
TYPES = pa.schema(
    [
        ("always", pa.float64()),
        ("f", pa.float64()),
        ("i", pa.int64()),
        ("t", pa.large_string()),
        ("b", pa.bool_()),
        ("d", pa.timestamp("us")),
    ]
)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint64)


@settings(max_examples=60, deadline=None)
@given(columns)
def test_encoding_is_row_wise_finite_and_kept_by_json(data):
    table = pa.table(data, schema=TYPES)
    schema = fit_schema(table)
    x = schema.encode(table)
    assert not np.isinf(x).any()
    again = Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))
    assert np.array_equal(bits(again.encode(table)), bits(x))
    row = table.num_rows // 2
    assert np.array_equal(bits(again.encode(table.slice(row, 1))), bits(x[row : row + 1]))
    assert np.array_equal(bits(schema.encode(pl.from_arrow(table))), bits(x))
    decoded = schema.decode(np.nan_to_num(x))
    assert all(len(v) == table.num_rows for v in decoded.values())
    for name, values in schema.observed(table).items():
        missing = np.array([v is None for v in values])
        first = schema.features.starts[schema.names.index(name)]
        assert np.array_equal(np.isnan(x[:, first]), missing)


@settings(max_examples=40, deadline=None)
@given(columns, st.sampled_from(["t.csv", "t.tsv.gz", "t.parquet", "t.feather", "t.jsonl"]))
def test_files_are_read_back_as_written(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("round") / name
    table = pa.table(data, schema=TYPES)
    write_table(table, path)
    back = read_table(path, schema=fit_schema(table, types={"t": "text"}) if _varies(data["t"]) else None)
    assert back.num_rows == table.num_rows and back.column_names == table.column_names
    assert back["i"].to_pylist() == data["i"] and back["b"].to_pylist() == data["b"]
    assert all(
        a == b or (b != b and (a is None or a != a)) for a, b in zip(back["f"].to_pylist(), data["f"], strict=True)
    )
    if _varies(data["t"]):
        assert back["t"].to_pylist() == data["t"]
    if name in ("t.parquet", "t.feather"):
        assert back.schema == table.schema


def _varies(values):
    return len({v for v in values if v is not None}) > 1
