"""Tables for the tests of the service."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv


def make_rows(n: int, seed: int) -> pa.Table:
    """Two related numbers, a count, a category with a formula among its values, and a label."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pa.table(
        {
            "a": a,
            "b": 2 * a + 0.1 * rng.normal(size=n),
            "n": rng.integers(0, 9, n),
            "colour": np.array(["red", "=1+1", "blue"])[rng.integers(0, 3, n)],
            "state": np.where(np.arange(n) % 10 == 9, "bad", "ok"),
        }
    )


def csv_of(rows: pa.Table) -> bytes:
    """The rows as the bytes of a CSV file."""
    sink = io.BytesIO()
    pcsv.write_csv(rows, sink)
    return sink.getvalue()
