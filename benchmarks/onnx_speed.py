"""Compare ONNX Runtime with PTAD itself, for one row and for 10,000, on the CPU.

    python benchmarks/onnx_speed.py [--columns 62] [--train 18000] [--threads 1]

Both get encoded rows. PTAD is timed with and without contributions of columns; the ONNX file always computes both.
OMP_NUM_THREADS sets the threads of PTAD.
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
    """Return the median of some repeats, after one for warming up."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=62)
    parser.add_argument("--train", type=int, default=18_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, options.columns))
    table = rng.normal(size=(options.train + 10_000, 10)) @ mixing
    table += 0.1 * rng.normal(size=table.shape)
    model = PTAD(verbose=0, device="cpu").fit(table[: options.train])
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        start = time.perf_counter()
        exported = export_model(Path(folder) / "model", Path(folder) / "model.onnx")
        print(
            f"exported in {time.perf_counter() - start:.0f} s, {exported.bytes / 1e6:.0f} MB, parity {exported.parity}"
        )
        runner = Runner(exported.path, n_threads=options.threads)
    x, detector = model.schema_.encode(table[options.train :]), model.detector_
    gaps = x.copy()
    gaps[rng.random(x.shape) < 0.05] = np.nan
    print(f"{options.columns} columns, {options.train} training rows, {options.threads} thread(s), milliseconds")
    print(f"{'rows':>8} {'score':>10} {'+ columns':>12} {'onnx':>10}")
    for name, rows, repeats in (("1", x[:1], 100), ("10,000", x, 3), ("gaps", gaps, 3)):
        times = (
            milliseconds(lambda rows=rows: detector.scores(rows), repeats),
            milliseconds(lambda rows=rows: detector.pipeline.explain(rows), repeats),
            milliseconds(lambda rows=rows: runner.run(rows), repeats),
        )
        print(f"{name:>8} {times[0]:10.1f} {times[1]:12.1f} {times[2]:10.1f}", flush=True)


if __name__ == "__main__":
    main()
