"""The typed path on real tables."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from ptad.tables import Schema, fit_schema

FOLDER = Path(os.environ.get("PTAD_DATA", "")) / "tables"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("PTAD_DATA" not in os.environ, reason="PTAD_DATA names no folder of benchmark tables"),
]

# Features, one per number and per category, and columns left out.
EXPECTED = {
    "hypothyroid": (27, {"TBG measured", "TBG"}),
    "bank_additional_full": (20, set()),
    "adult": (14, set()),
    "nsl_kdd": (40, {"num_outbound_cmds"}),
}
LABELS = {"hypothyroid": ["binaryClass"], "bank_additional_full": ["y"], "adult": ["income"], "nsl_kdd": ["attack"]}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_real_table(name):
    table = pq.read_table(FOLDER / f"{name}.parquet")
    table = table.drop_columns([*LABELS[name], *({"split"} & set(table.column_names))])
    schema = fit_schema(table)
    assert set(schema.excluded) >= EXPECTED[name][1]
    assert not any(reason.startswith("identifier") for reason in schema.excluded.values())
    x = schema.encode(table)
    assert x.shape == (table.num_rows, len(schema.features)) and len(schema.features) == EXPECTED[name][0]
    assert not np.isinf(x).any()
    rates = np.array([table[n].null_count / table.num_rows for n in schema.names])
    np.testing.assert_allclose(np.isnan(x).mean(axis=0), rates[schema.features.column], atol=1e-12)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    part = table.slice(0, 20_000)
    for other in (part.to_pandas(), pl.from_arrow(part)):
        assert np.array_equal(again.encode(other).view(np.uint64), x[:20_000].view(np.uint64))
    for row in (0, 777, 3000):
        assert np.array_equal(schema.encode(table.slice(row, 1)).view(np.uint64), x[row : row + 1].view(np.uint64))
    head = table.slice(0, 500)
    back, seen = schema.decode(np.nan_to_num(x[:500])), schema.observed(head)
    for column, kind in schema.types.items():
        for b, s in zip(back[column], seen[column], strict=True):
            if s is not None:
                assert b == s if kind == "categorical" else b == pytest.approx(s, rel=1e-3, abs=1e-3), column
