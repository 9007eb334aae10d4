"""``ptad benchmark``: the whole way on tiny files, and exit code 2 for the user's mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ptad.benchmark.collections import dataset_info
from ptad.benchmark.results import ResultsFile
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


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """Six tables of one's own: arrays with a fixed split, a CSV file with a label column."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        test = rng.normal(size=(30, 3))
        y = np.arange(30) < 6
        test[y] += 4.0
        np.savez(folder / f"t{seed}.npz", train=rng.normal(size=(120, 3)), test=test, y=y)
    lines = [f"{i % 7},{'ab'[i % 2]},{int(i % 10 == 0)}" for i in range(80)]
    (folder / "typed.csv").write_text("\n".join(["number,letter,fraud", *lines]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_folder_of_ones_own_has_a_leaderboard(own_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.csv"
    run = ["run", "--collection", str(own_folder), "--label", "fraud", "--methods", "knn,nn1-clip1,ptad"]
    result = RUNNER.invoke(app, ["benchmark", *run, "--seeds", "0", "--jobs", "2", "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = ResultsFile(out).read()
    assert len(rows) == 6 * 4 and {row["status"] for row in rows} == {"ok"}
    assert all((row["false_alarms_10"] is None) == (row["method"] != "ptad") for row in rows)
    page = tmp_path / "docs" / "mine.md"
    assert RUNNER.invoke(app, ["benchmark", "leaderboard", str(out), "--out", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "6 tables that all of 3 methods" in text and "| ptad | mine |" in text
    assert (page.parent / "images" / "mine_critical_difference.png").stat().st_size > 1000


@pytest.mark.slow
def test_run_and_tables(folder: Path) -> None:
    out = folder / "r.csv"
    arguments = ["run", "--data", str(folder), "--methods", "knn,pca", "--datasets", "wine,glass", "--out", str(out)]
    result = RUNNER.invoke(app, ["benchmark", *arguments, "--seeds", "0"])
    assert result.exit_code == 0, result.output
    assert len(ResultsFile(out).read()) == 8
    again = RUNNER.invoke(app, ["benchmark", *arguments, "--seeds", "0"])
    assert "nothing was left to do" in again.output
    tables = RUNNER.invoke(app, ["benchmark", "tables", str(out)])
    assert tables.exit_code == 0 and "| Wine |" in tables.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--methods", "nope"], "Choose from: knn"),
        (["run", "--datasets", "nope"], "Choose from: all, paper, arrhythmia"),
        (["run", "--seeds", "x"], "0-4 or 0,2,7"),
        (["run", "--jobs", "0"], "'jobs'"),
        (["experiment", "nope"], "Choose from: ablation"),
        (["tables", "nowhere.csv"], "no results file"),
        (["pages", "--results", "nowhere"], "There is no 'nowhere'"),
        (["data", "nowhere"], "There is no folder 'nowhere'"),
        (["run", "--collection", "nowhere"], "no collection and no folder 'nowhere'"),
        (["run", "--collection", "macro"], "psorus/Outformer"),
        (["leaderboard", "nowhere.csv", "--out", "x.md"], "no results file"),
    ],
)
def test_mistakes_exit_with_2(folder: Path, arguments: list[str], message: str) -> None:
    result = RUNNER.invoke(app, ["benchmark", *arguments], env={"PTAD_DATA": str(folder)})
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_data_command(folder: Path) -> None:
    np.savez(folder / "pima.npz", X=np.ones((40, 3)), y=np.arange(40) < 6)
    checked = RUNNER.invoke(app, ["benchmark", "data", str(folder)])
    assert checked.exit_code == 2 and "paper: 2 of 20 tables are usable" in checked.output
    assert "census                   missing" in checked.output and "pima                     wrong" in checked.output
    assert "macro: There is no folder" in checked.output and "psorus/Outformer" in checked.output
    listed = RUNNER.invoke(app, ["benchmark", "data", "--list", str(folder)])
    assert listed.exit_code == 0 and "census" in listed.output
    (folder / "macro").mkdir()
    np.savez(folder / "macro" / "odd_a.npz", train=np.eye(9), test=np.eye(9)[:6], y=np.arange(6) < 2)
    (folder / "macro" / "ovr_b.npz").write_bytes(b"torn")
    wide = RUNNER.invoke(app, ["benchmark", "data", str(folder), "--collection", "macro"])
    assert wide.exit_code == 2 and "macro: 1 of 2 tables are usable" in wide.output
    assert "ovr_b                    unreadable" in wide.output
