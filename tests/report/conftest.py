"""One detector for mixed columns, shared by all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD


def make_table(n_rows: int, seed: int) -> pd.DataFrame:
    """Rows with a known structure: width follows length, and the city has four values."""
    rng = np.random.default_rng(seed)
    length = rng.normal(10.0, 2.0, n_rows)
    return pd.DataFrame(
        {
            "length": length.round(3),
            "width": (2.0 * length + rng.normal(0.0, 0.3, n_rows)).round(3),
            "city": rng.choice(["Bonn", "Oslo", "Paris", "Rome"], n_rows),
            "paid": rng.random(n_rows) < 0.7,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n_rows), unit="D"),
            "note": [f"note {i} {'x' * int(i % 7)}" for i in rng.integers(0, 400, n_rows)],
            "constant": "Atlantis",
        }
    )


@pytest.fixture(scope="session")
def rows_of() -> Callable[[int, int], pd.DataFrame]:
    """``rows_of(n_rows, seed)`` makes normal rows."""
    return make_table


@pytest.fixture(scope="session")
def model() -> PTAD:
    return PTAD(verbose=0, device="cpu").fit(make_table(240, 0))


@pytest.fixture(scope="session")
def paper_model(make_detector: Callable[..., PTAD]) -> PTAD:
    """A tiny detector of the paper's preset."""
    pytest.importorskip("torch")
    return make_detector("paper").fit(make_table(120, 0))


@pytest.fixture(scope="session")
def model_folder(model: PTAD, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    model.save(folder)
    return folder


@pytest.fixture
def table() -> pd.DataFrame:
    """New rows; rows 3 and 7 are far off in one column, and row 5 in another."""
    made = make_table(120, 1)
    made.loc[[3, 7], "length"] = [80.0, 90.0]
    made.loc[5, "city"] = "Neverland"
    return made
