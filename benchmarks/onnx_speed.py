"""ONNX Runtime against PTAD itself, for one row and for 10,000, on the CPU.

    python benchmarks/onnx_speed.py [--columns 62] [--train 18000] [--threads 1]

Encoded rows go in on both sides. PTAD is timed with and without the columns that a score comes from; the ONNX file
always gives both. Threads of PTAD: OMP_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ptad import PTAD
from ptad.export.runner import Runner
from ptad.export.writing import export_model


def milliseconds(action: Callable[[], Any], repeats: int) -> float:
    """Median of some repeats, after one that does not count."""
    action()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=62)
    parser.add_argument("--train", type=int, default=18_000)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, asked.columns))
    table = rng.normal(size=(asked.train + 10_000, 10)) @ mixing
    table += 0.1 * rng.normal(size=table.shape)
    model = PTAD(verbose=0, device="cpu").fit(table[: asked.train])
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        start = time.perf_counter()
        done = export_model(Path(folder) / "model", Path(folder) / "model.onnx")
        print(f"exported in {time.perf_counter() - start:.0f} s, {done.bytes / 1e6:.0f} MB, parity {done.parity}")
        runner = Runner(done.path, n_threads=asked.threads)
    x, detector = model.schema_.encode(table[asked.train :]), model.detector_
    gaps = x.copy()
    gaps[rng.random(x.shape) < 0.05] = np.nan
    print(f"{asked.columns} columns, {asked.train} training rows, {asked.threads} thread(s), milliseconds")
    print(f"{'rows':>8} {'score':>10} {'+ columns':>12} {'onnx':>10}")
    for name, rows, repeats in (("1", x[:1], 100), ("10,000", x, 3), ("gaps", gaps, 3)):
        taken = (
            milliseconds(lambda rows=rows: detector.scores(rows), repeats),
            milliseconds(lambda rows=rows: detector.pipeline.explain(rows), repeats),
            milliseconds(lambda rows=rows: runner.run(rows), repeats),
        )
        print(f"{name:>8} {taken[0]:10.1f} {taken[1]:12.1f} {taken[2]:10.1f}", flush=True)


if __name__ == "__main__":
    main()
