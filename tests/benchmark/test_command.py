"""``ptad benchmark``: the whole way on tiny files, and exit code 2 for the user's mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ptad.benchmark.catalogue import dataset_info
from ptad.benchmark.store import ResultStore
from ptad.cli import app

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("wine", "glass"):
        info = dataset_info(name)
        X = rng.normal(size=(info.rows, info.columns))
        y = np.arange(info.rows) < info.anomalies
        X[y] += 4.0
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    return tmp_path


@pytest.mark.slow
def test_run_tables_figures(folder: Path) -> None:
    out = folder / "r.csv"
    arguments = ["run", "--data", str(folder), "--methods", "knn,pca", "--datasets", "wine,glass", "--out", str(out)]
    result = RUNNER.invoke(app, ["benchmark", *arguments, "--seeds", "0"])
    assert result.exit_code == 0, result.output
    assert len(ResultStore(out).read()) == 8
    again = RUNNER.invoke(app, ["benchmark", *arguments, "--seeds", "0"])
    assert "nothing was left to do" in again.output
    tables = RUNNER.invoke(app, ["benchmark", "tables", str(out), "--out", str(folder / "docs")])
    assert tables.exit_code == 0 and "| Wine |" in tables.output
    assert (folder / "docs" / "tables.tex").exists()
    figures = RUNNER.invoke(app, ["benchmark", "figures", str(out), "--out", str(folder / "docs")])
    assert figures.exit_code == 0 and len(list((folder / "docs").glob("*.png"))) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--methods", "nope"], "Choose from: knn"),
        (["run", "--datasets", "nope"], "Choose from: arrhythmia"),
        (["run", "--seeds", "x"], "0-4 or 0,2,7"),
        (["run", "--jobs", "0"], "'jobs'"),
        (["experiment", "nope"], "Choose from: ablation"),
        (["tables", "nowhere.csv"], "no results file"),
        (["figures", "nowhere.csv"], "no results file"),
        (["data", "nowhere"], "no folder"),
    ],
)
def test_mistakes_exit_with_2(folder: Path, arguments: list[str], message: str) -> None:
    result = RUNNER.invoke(app, ["benchmark", *arguments], env={"PTAD_DATA": str(folder)})
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_data_command(folder: Path) -> None:
    np.savez(folder / "pima.npz", X=np.ones((40, 3)), y=np.arange(40) < 6)
    checked = RUNNER.invoke(app, ["benchmark", "data", "--check", str(folder)])
    assert checked.exit_code == 2 and "18 of 20 data sets are not usable" in checked.output
    assert "wine               ok" in checked.output and "census             missing" in checked.output
    assert "pima               wrong" in checked.output
    listed = RUNNER.invoke(app, ["benchmark", "data", "--list", str(folder)])
    assert listed.exit_code == 0 and "census" in listed.output
