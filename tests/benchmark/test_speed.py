"""The speed experiment at tiny sizes: parts measure, are judged against their bounds, and keep each other's rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptad.benchmark.experiments.speed import PARTS, Bench, Sizes, _meets, correlated, read_speed, speed_tables
from ptad.benchmark.runner import RunSettings
from ptad.errors import SettingError

TINY = Sizes(
    columns=5,
    train=60,
    test=40,
    large=80,
    small=(40, 4),
    score_rows=(20, 200),
    fit_rows=(40, 80),
    fit_columns=(3, 6),
    fit_columns_rows=40,
    repeats=1,
    calls=3,
    mcm_steps=2,
    config={"n_steps": 3, "calibration": "none", "members": "single"},
)


def test_columns_are_correlated_and_shared_between_seeds() -> None:
    first, second = correlated(4000, 20, 0), correlated(4000, 20, 1)
    assert first.shape == (4000, 20) and first.dtype == np.float32
    assert not np.array_equal(first, second)
    assert np.corrcoef(first.T) == pytest.approx(np.corrcoef(second.T), abs=0.12)
    others = np.corrcoef(first.T) - np.eye(20)
    assert np.abs(others).max() > 0.5


def test_bounds_are_judged() -> None:
    assert _meets(3.9, "< 4") and not _meets(4.0, "< 4") and _meets(4.0, "<= 4") and _meets(2e6, ">= 1e6")
    bench = Bench("cpu", 1, TINY)
    for value in (0.5, 2.0, 9.0):
        bench.record("knn", "x", value, "times", "<= 4", "<= 1")
    assert [row.holds for row in bench.rows] == ["goal", "bound", "no"]
    bench._growth("knn", "time", (10, 100, 1000), (1.0, 2.0, 20.0))
    assert [(row.value, row.bound, row.holds) for row in bench.rows[3:]] == [(2.0, "", ""), (10.0, "<= 12", "bound")]


@pytest.mark.slow
def test_parts_measure_and_keep_each_other(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    for parts in (["small", "latency"], ["knn", "fit"], ["small"]):
        (table,) = speed_tables(tmp_path, out, RunSettings(), parts, TINY)
    found = [row[0].text for row in table.rows]
    assert found == ["knn"] * 5 + ["fit"] * 3 + ["small"] + ["latency"] * 2
    assert all(float(row[2].text) > 0 for row in table.rows)
    assert read_speed(tmp_path / "speed.csv").rows == table.rows


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no part 'nope'.*latency"):
        speed_tables(tmp_path, tmp_path / "r.csv", RunSettings(), ["nope"])
    with pytest.raises(SettingError, match="needs a GPU"):
        speed_tables(tmp_path, tmp_path / "r.csv", RunSettings(), ["gpu"])
    assert set(PARTS) >= {"gpu", "knn", "fit", "small", "latency"}
