"""Measure the speed of the default preset, beside PyOD's KNN on the same rows.

    python benchmarks/speed.py                  # two cores: a few minutes, most of them the million rows
    python benchmarks/speed.py --scale 0.01     # a hundredth of all rows, to try the script itself

On a GPU: benchmarks/gpu_scoring.py. Tables are random with correlated columns: mixtures of a few latent factors, some
through a non-linear function, and noise.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ptad import PTAD
from ptad.benchmark.measurement import peak_memory_mb, reset_peak_memory

TRAIN, TEST, COLUMNS = 18_000, 23_000, 62
Matrix = np.ndarray[Any, np.dtype[np.float64]]


def correlated(n_rows: int, n_columns: int, seed: int) -> Matrix:
    """Return random rows with correlated columns; the seed changes the rows, not the correlations."""
    n_factors = max(2, n_columns // 4)
    weights = np.random.default_rng(12345).normal(size=(n_factors, n_columns)) / np.sqrt(n_factors)
    rng = np.random.default_rng(seed)
    rows: Matrix = rng.normal(size=(n_rows, n_factors)) @ weights
    rows[:, ::3] = np.tanh(rows[:, ::3])
    return rows + 0.1 * rng.normal(size=rows.shape)


def seconds(action: Callable[[], Any], repeats: int = 1) -> float:
    """Return the median time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def against_knn(scale: float) -> PTAD:
    """Fit and score beside PyOD's KNN."""
    from pyod.models.knn import KNN

    train, test = correlated(int(TRAIN * scale), COLUMNS, 0), correlated(int(TEST * scale), COLUMNS, 1)
    ptad, knn = PTAD(verbose=0), KNN(n_neighbors=5, n_jobs=-1)
    PTAD(verbose=0).fit(train[:200]).anomaly_score(test[:200])  # imports are not timed
    rows = (
        ("fit", seconds(lambda: ptad.fit(train), 3), seconds(lambda: knn.fit(train))),
        ("score", seconds(lambda: ptad.anomaly_score(test), 3), seconds(lambda: knn.decision_function(test))),
    )
    for name, ptad_seconds, knn_seconds in rows:
        n_rows = len(train if name == "fit" else test)
        ratio = ptad_seconds / knn_seconds
        print(f"{name} {n_rows:,} x {COLUMNS}: {ptad_seconds:.2f} s, PyOD's KNN {knn_seconds:.2f} s, {ratio:.2f} times")
    one = seconds(lambda: ptad.anomaly_score(test[:1]), 200)
    print(f"one row: {1000 * one:.2f} ms, PyOD's KNN {1000 * seconds(lambda: knn.decision_function(test[:1]), 50):.2f}")
    print(f"explain 100 rows: {seconds(lambda: ptad.explain(test[:100])):.2f} s, score them: ", end="")
    print(f"{seconds(lambda: ptad.anomaly_score(test[:100]), 5):.3f} s")
    return ptad


def command(detector: PTAD) -> None:
    """Time ``ptad score`` of 1,000 rows as a whole process."""
    program = shutil.which("ptad", path=str(Path(sys.executable).parent)) or "ptad"
    with tempfile.TemporaryDirectory() as folder:
        detector.save(Path(folder, "model"))
        rows = correlated(1_000, COLUMNS, 2)
        table = pa.table({f"x{i}": column for i, column in enumerate(rows.T)})
        pa.csv.write_csv(table, Path(folder, "rows.csv"))
        call = [program, "score", f"{folder}/model", f"{folder}/rows.csv", "--out", f"{folder}/scores.csv"]

        def run() -> None:
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"`ptad score` failed: {done.stderr}")

        print(f"`ptad score` of 1,000 rows, the whole process: {seconds(run, 3):.2f} s")


def growth(scale: float) -> None:
    """Time fits of ten times as many rows or columns; a factor of 10 is linear."""
    for title, shapes in (
        ("rows", ((2_000, 20), (20_000, 20), (200_000, 20))),
        ("columns", ((2_000, 10), (2_000, 100), (2_000, 500))),
    ):
        for n_rows, n_columns in shapes:
            train = correlated(max(100, int(n_rows * scale)), n_columns, 0)
            detector = PTAD(verbose=0)
            fit = seconds(lambda detector=detector, train=train: detector.fit(train))
            score = seconds(lambda detector=detector, train=train: detector.anomaly_score(train[:10_000]))
            shape = f"{len(train):,} x {n_columns}"
            print(f"growth with {title}: fit {shape} {fit:.2f} s, score {min(len(train), 10_000):,} rows {score:.2f} s")


def million(scale: float) -> None:
    """Fit a million rows of 30 columns."""
    train = correlated(int(1_000_000 * scale), 30, 0)
    reset_peak_memory()
    elapsed = seconds(lambda: PTAD(verbose=0).fit(train))
    print(
        f"fit {len(train):,} x 30: {elapsed:.1f} s, peak {peak_memory_mb():,.0f} MB ({train.nbytes >> 20} of them rows)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the speed of the default preset, beside PyOD's KNN.")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    options = parser.parse_args()
    detector = against_knn(options.scale)
    growth(options.scale)
    million(options.scale)
    command(detector)


if __name__ == "__main__":
    main()
