"""Measure scoring on a GPU: 512 rows and a million, 62 columns, 16,384 reference rows; check that no term synchronises.

python benchmarks/gpu_scoring.py [--device cuda] [--columns 62] [--train 20000] [--rows 1000000]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ptad.config import make_config
from ptad.detector import Detector
from ptad.reference import Batch
from ptad.tables.features import Features


def milliseconds(action: Callable[[], Any], repeats: int) -> float:
    """Return the median of some repeats, after two for warming up."""
    times = []
    for i in range(repeats + 2):
        start = time.perf_counter()
        action()
        if i > 1:
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--columns", type=int, default=62)
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, options.columns))

    def sample(n: int) -> np.ndarray:
        return rng.normal(size=(n, 10)) @ mixing + 0.1 * rng.normal(size=(n, options.columns))

    config = make_config("default", {"calibration.method": "split"})
    features = Features.numeric(options.columns)
    train, few, many = sample(options.train), sample(512), sample(options.rows)
    models = {d: Detector.fit(train, features, config, seed=0, device=d) for d in ("cpu", options.device)}
    on_device = models[options.device]
    difference = np.abs(on_device.scores(few) / models["cpu"].scores(few) - 1.0).max()
    print(f"largest relative difference from numpy {difference:.1e}")
    print(f"512 rows: {milliseconds(lambda: on_device.scores(few), 30):.2f} ms")
    print(f"512 rows explained: {milliseconds(lambda: on_device.pipeline.explain(few), 10):.2f} ms")
    elapsed = milliseconds(lambda: on_device.scores(many), 3)
    print(f"{options.rows:,} rows: {elapsed:.0f} ms, {options.rows / elapsed / 1000:.2f} million rows per second")
    if options.device.startswith("cuda"):
        rows, pipeline = torch.as_tensor(few, device=options.device), on_device.pipeline
        torch.cuda.set_sync_debug_mode("error")
        for term in pipeline.terms:
            term.value(Batch(rows, pipeline.reference))
            term.explain(Batch(rows, pipeline.reference))
        torch.cuda.set_sync_debug_mode("default")
        print("no term synchronises with the device")
        for name, size in (("512", few), ("16,384", many[:16384])):
            batch_rows = torch.as_tensor(size, device=options.device)
            with torch.profiler.profile() as profile:
                batch = Batch(batch_rows, pipeline.reference)
                for term in pipeline.terms:
                    term.value(batch)
                torch.cuda.synchronize()
            print(name, profile.key_averages().table(sort_by="cuda_time_total", row_limit=14, max_name_column_width=60))


if __name__ == "__main__":
    main()
