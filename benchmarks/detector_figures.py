"""Figures of the detector on this machine: time against PyOD in the same run, memory while scoring, parameter counts.

Run it with:  python benchmarks/detector_figures.py
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.datasets import load_breast_cancer

from ptad import PTAD
from ptad.paper.network import Network
from ptad.paper.settings import NetworkSettings

N_MILLION = 1_000_000


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(title: str, train: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> PTAD:
    print(f"\n{title}: {len(train)} x {train.shape[1]} rows to fit, {len(new)} to score")
    ptad = PTAD(verbose=0)
    methods = {"PTAD": (ptad, ptad.anomaly_score)}
    for peer in (KNN(), IForest()):
        methods[type(peer).__name__] = (peer, peer.decision_function)
    for name, (detector, score) in methods.items():
        fit = seconds(lambda detector=detector: detector.fit(train))
        scored = seconds(lambda score=score: score(new))
        print(f"  {name:8s} fit {fit:8.2f} s   {len(new) / scored:10.0f} rows/s")
    return ptad


def main() -> None:
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    x, y = load_breast_cancer(return_X_y=True)
    compare("breast cancer", x[y == 1][:178], x)

    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, 30))
    table = rng.normal(size=(120_000, 10)) @ mixing + 0.1 * rng.normal(size=(120_000, 30))
    detector = compare("100,000 x 30", table[:100_000], table[100_000:])

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = rng.normal(size=(N_MILLION, 30)).astype(np.float32)
    taken = seconds(lambda: detector.anomaly_score(rows))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{N_MILLION} rows scored in {taken:.0f} s; the table has {rows.nbytes / 2**20:.0f} MiB;")
    print(f"peak memory {before:.0f} MiB before it was made, {after:.0f} MiB after it was scored")

    print("\nparameters of the paper's network (thousands)")
    for d in (21, 62, 274, 500):
        print(f"  d = {d:<4d}{Network(torch.Generator(), d, NetworkSettings()).n_parameters / 1000:12,.0f}")


if __name__ == "__main__":
    main()
