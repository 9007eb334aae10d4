"""One small mixed table, its model, and the ONNX file that the command made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ptad import PTAD
from ptad.cli import app


def mixed_frame(n: int, seed: int) -> pd.DataFrame:
    """Numbers, large integers, a truth value and categories, with missing values in each."""
    rng = np.random.default_rng(seed)
    speed = rng.normal(10, 1, n)
    frame = pd.DataFrame(
        {
            "speed": speed,
            "load": speed + 0.1 * rng.normal(size=n),
            "stamp": 2**60 + rng.integers(0, 40, n),
            "count": rng.integers(0, 9, n).astype(float),
            "on": rng.random(n) < 0.5,
            "mode": rng.choice(["a", "b", "c"], n),
            "unit": "kg",
        }
    ).astype({"on": object, "mode": object})
    for column in ("load", "count", "on", "mode"):
        frame.loc[rng.random(n) < 0.05, column] = None
    return frame


@pytest.fixture(scope="session")
def new_rows() -> pd.DataFrame:
    """Rows to score: as in training, far outliers, an unseen category, and many gaps."""
    frame = mixed_frame(40, seed=1)
    frame.loc[3, "speed"], frame.loc[5, "mode"], frame.loc[8, "count"] = 1e6, "unseen", -400.0
    frame.loc[11, ["speed", "load", "count", "on", "mode"]] = None
    return frame


@pytest.fixture(scope="session")
def mixed_model() -> PTAD:
    """A model of the table; few neighbours make a short graph."""
    return PTAD(config={"reference.neighbours": 8}, verbose=0, device="cpu").fit(mixed_frame(160, seed=0))


@pytest.fixture(scope="session")
def exported(mixed_model: PTAD, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The file, and what ``ptad export --json`` said about it."""
    folder = tmp_path_factory.mktemp("export")
    mixed_model.save(folder / "model")
    done = CliRunner().invoke(app, ["export", str(folder / "model"), "--out", str(folder / "model.onnx"), "--json"])
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["model", "model.onnx"]
    return folder / "model.onnx", json.loads(done.stdout)
