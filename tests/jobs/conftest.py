"""A small model and its table, for the engines."""

import numpy as np
import pyarrow as pa
import pytest

from ptad import PTAD
from ptad.tables import write_table


@pytest.fixture(scope="session")
def rows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=100)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, 100)]
    return pa.table({"a": a, "b": a + 0.1 * rng.normal(size=100), "n": rng.integers(0, 9, 100), "colour": colour})


@pytest.fixture(scope="session")
def folder(tmp_path_factory, rows):
    """A folder with table.csv and the model that was fitted on it."""
    path = tmp_path_factory.mktemp("engine")
    write_table(rows, path / "table.csv")
    PTAD(verbose=0, device="cpu").fit(rows).save(path / "model")
    return path
