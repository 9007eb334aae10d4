"""One small table and one small model for all tests of the command line."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from ptad.cli import app
from ptad.tables import write_table

TINY_ARGS = ["--set", "calibration.most_folds=5", "--set", "calibration.folds=5", "--device", "cpu"]


def normal_table(n=160, seed=0):
    """Three related numbers, a category, an identifier, a constant and a label of which every eighth is bad."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    bad = np.arange(n) % 8 == 7
    return pa.table(
        {
            "id": np.arange(n) + 1000,
            "a": a,
            "b": 2 * a + rng.normal(size=n) * 0.1 + np.where(bad, 30.0, 0.0),
            "count": rng.integers(0, 50, n),
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, n)],
            "unit": ["kg"] * n,
            "status": np.where(bad, "broken", "ok"),
        }
    )


@pytest.fixture(scope="session")
def tiny():
    """Options for a model that is fitted in a second."""
    return TINY_ARGS


@pytest.fixture(scope="session")
def make_table():
    return normal_table


@pytest.fixture
def ptad():
    """Run a command in this process; the result has exit_code, stdout and stderr."""
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture(scope="session")
def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


@pytest.fixture
def ptad_process(environment):
    """Start a command in its own process."""

    def start(*args, **more):
        command = [sys.executable, "-c", "from ptad.cli import main; main()", *map(str, args)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{"env": environment} | more)

    return start


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with table.csv and the model that was fitted on its normal rows."""
    path = tmp_path_factory.mktemp("cli")
    write_table(normal_table(), path / "table.csv")
    args = ["fit", path / "table.csv", "--out", path / "model", "--label", "status", "--normal", "ok", *TINY_ARGS]
    result = CliRunner().invoke(app, [*map(str, args), "--json", "--quiet"])
    assert result.exit_code == 0, result.stderr
    (path / "summary.json").write_text(result.stdout)
    return path


@pytest.fixture(scope="session")
def table(folder):
    return folder / "table.csv"


@pytest.fixture(scope="session")
def model(folder):
    return folder / "model"
