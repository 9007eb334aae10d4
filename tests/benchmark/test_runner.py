"""The runner: resumes, keeps reasons, stops late cells, hides the labels."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ptad.benchmark.loading import Dataset
from ptad.benchmark.measurement import Task, measure
from ptad.benchmark.plan import Cell, RunSettings, config_hash, make_grid
from ptad.benchmark.results import ResultsFile
from ptad.benchmark.runner import run_grid
from ptad.errors import DataError, SettingError


def load(name: str, seed: int) -> Dataset:
    if name == "broken":
        raise DataError("broken.npz: all rows are normal rows; both kinds are needed.")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = np.arange(60) >= 50
    X[y] += 6.0
    return Dataset(name, X, y)


def test_grid_has_two_scalings_except_for_own() -> None:
    cells = make_grid(["knn", "nn1-clipped"], ["wine", "glass"], [0, 1])
    assert len(cells) == 2 * 2 * (2 + 1)
    assert {cell.scaling for cell in cells if cell.method == "nn1-clipped"} == {"own"}


@pytest.mark.slow
def test_run_resumes_and_keeps_reasons(tmp_path: Path) -> None:
    store = ResultsFile(tmp_path / "r.csv")
    cells = [
        Cell("knn", "toy", 0, "minmax"),
        Cell("pca", "toy", 0, "standard"),
        Cell("pca", "broken", 0, "standard"),
        Cell("lof", "toy", 0, "standard", {"metric": "no-such-metric"}),
        Cell("deepsvdd", "toy", 0, "standard", {"training": {"epochs": 10_000_000, "max_steps": 10_000_000}}),
    ]
    settings = RunSettings(time_limit=3.0, max_test=20)
    made = run_grid(cells[:4], store, load, RunSettings(max_test=20)) + run_grid(cells[4:], store, load, settings)
    rows = {(row["method"], row["dataset"]): row for row in made}
    assert len(rows) == 5
    knn = rows["knn", "toy"]
    assert knn["status"] == "capped" and knn["reason"] == "20 of 35 test rows"
    assert knn["auc_roc"] == 1.0 and knn["n_train"] == 25 and knn["n_test"] == 20 and knn["n_anomalies"] == 6
    assert knn["peak_rss_mb"] > 50 and knn["max_test"] == 20 and "torch=" in knn["versions"]
    assert rows["pca", "broken"]["status"] == "skipped" and "both kinds" in rows["pca", "broken"]["reason"]
    assert rows["lof", "toy"]["status"] == "failed" and "no-such-metric" in rows["lof", "toy"]["reason"]
    assert rows["deepsvdd", "toy"]["status"] == "timeout" and "3 s" in rows["deepsvdd", "toy"]["reason"]
    assert len(store.read()) == 5
    assert run_grid(cells, store, load, settings) == []
    assert len(run_grid(cells[:4], store, load, RunSettings(max_test=20, retry=True))) == 2
    assert len(run_grid(cells[:1], store, load, RunSettings())) == 1  # another cap: another cell


@pytest.mark.slow
def test_an_interrupted_run_ends_at_once_and_the_order_counts(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.csv")
    endless = {"training": {"epochs": 10_000_000, "max_steps": 10_000_000}}
    cells = [
        Cell("pca", "toy", 1, "standard"),
        Cell("pca", "toy", 0, "standard"),
        Cell("deepsvdd", "endless", 0, "standard", endless),
        Cell("pca", "toy", 2, "standard"),
    ]

    def load_and_interrupt(name: str, seed: int) -> Dataset:
        if name == "endless":
            # to the main thread, which waits: another one of the process may get a signal of os.kill
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return load(name, seed)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # an earlier test of the process may have set another
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, results, load_and_interrupt, RunSettings(large_first=False))
    # The cell in progress is given up without a row: the next run measures it.
    assert [(row["method"], row["seed"]) for row in results.read()] == [("pca", 1), ("pca", 0)]


def test_worker_gets_no_labels(tmp_path: Path) -> None:
    assert set(Task.__dataclass_fields__) == {"method", "settings", "seed", "device", "train", "test"}
    for name in ("train", "test"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(30, 3)))
    outcome = measure(Task("pca", {}, 0, "cpu", tmp_path / "train.npy", tmp_path / "test.npy"))
    assert outcome.status == "ok" and outcome.scores is not None and outcome.scores.shape == (30,)
    broken = measure(Task("pca", {}, 0, "cpu", tmp_path / "none.npy", tmp_path / "test.npy"))
    assert broken.status == "failed" and broken.reason.startswith("FileNotFoundError")


def test_observed_false_alarms_are_those_of_normal_rows(tmp_path: Path) -> None:
    def measure_here(tasks: Any, on_outcome: Any, **options: Any) -> None:
        for number, task in tasks:
            on_outcome(number, measure(task))

    cells = [Cell("ptad", "toy", 0, "own"), Cell("knn", "toy", 0, "minmax")]
    rows = {row["method"]: row for row in run_grid(cells, ResultsFile(tmp_path / "r.csv"), load, execute=measure_here)}
    assert "false_alarms_10" not in rows["knn"]
    # 25 training rows support a rate of 5 %, not of 1 %; all anomalies are flagged and none of them counts
    assert rows["ptad"]["false_alarms_1"] is None and 0.0 <= rows["ptad"]["false_alarms_5"] < 0.4
    assert rows["ptad"]["auc_roc"] == 1.0
    written = {row["method"]: row["false_alarms_10"] for row in ResultsFile(tmp_path / "r.csv").read()}
    assert written == {"ptad": pytest.approx(rows["ptad"]["false_alarms_10"], rel=1e-5), "knn": None}


def test_a_cell_measured_under_another_name_is_not_measured_again(tmp_path: Path) -> None:
    store = ResultsFile(tmp_path / "r.csv")
    names = [("main", "knn"), ("other", "its name there")]
    first, second = (Cell("knn", "toy", 0, "minmax", {"n_neighbors": 3}, *name) for name in names)
    different = Cell("knn", "toy", 0, "minmax", {"n_neighbors": 4}, "other", "four")
    measured: list[int] = []

    def measure_here(tasks: Any, on_outcome: Any, **options: Any) -> None:
        for number, task in tasks:
            measured.append(number)
            on_outcome(number, measure(task))

    run_grid([first], store, load, execute=measure_here)
    rows = run_grid([second, different], store, load, execute=measure_here)
    assert len(measured) == 2 and len(list(store.read())) == 3
    adopted, original = rows[0], next(row for row in store.read() if row["variant"] == "knn")
    assert (adopted["experiment"], adopted["variant"]) == names[1]
    assert {k: adopted[k] for k in ("auc_pr", "fit_seconds")} == {k: original[k] for k in ("auc_pr", "fit_seconds")}
    if not torch.cuda.is_available():  # then "auto" is the CPU, where the cell was measured
        auto = [replace(second, experiment="third")]
        assert run_grid(auto, store, load, RunSettings(device="auto"))[0]["auc_pr"] == original["auc_pr"]
    n_rows = len(list(store.read()))
    elsewhere = RunSettings(device="cuda")  # another device draws other random numbers: another cell
    run_grid([replace(second, experiment="last")], store, load, elsewhere, execute=lambda *a, **k: measured.append(-1))
    assert measured[-1] == -1 and len(list(store.read())) == n_rows


def test_settings_are_judged(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="'jobs'"):
        RunSettings(jobs=0)
    with pytest.raises(SettingError, match="The device 'tpu' cannot be used"):
        run_grid([Cell("knn", "wine", 0, "minmax")], ResultsFile(tmp_path / "r.csv"), load, RunSettings(device="tpu"))
    with pytest.raises(SettingError, match="time_limit"):
        RunSettings(time_limit=0)
    with pytest.raises(SettingError, match=r"knn on wine.*does not take"):
        run_grid([Cell("knn", "wine", 0, "minmax", {"colour": 1})], ResultsFile(tmp_path / "r.csv"), load)


def test_config_hash_tells_settings_apart() -> None:
    base = config_hash("knn", {"k": 5, "a": 1}, None, None)
    assert base == config_hash("knn", {"a": 1, "k": 5}, None, None) and len(base) == 12
    assert base != config_hash("knn", {"k": 6, "a": 1}, None, None)
    assert base != config_hash("knn", {"k": 5, "a": 1}, 1000, None)
