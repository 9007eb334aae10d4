"""The measurement of one cell inside a worker process.

The worker gets scaled rows and settings but no labels, so that no method can use them to pick an epoch or a threshold.
"""

from __future__ import annotations

import platform
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.peers import CHEAP_PEERS, make_peer
from ptad.devices import resolve_device


@dataclass(frozen=True)
class Task:
    """The input of a worker: a method, its settings, and the files of the rows."""

    method: str
    settings: dict[str, Any]
    seed: int
    device: str
    train: Path
    test: Path


@dataclass(frozen=True)
class Outcome:
    """The result of a worker: scores and costs, or with the status failed or timeout a reason."""

    status: str = "ok"
    reason: str = ""
    scores: Matrix | None = None
    capped: str = ""
    p_values: Matrix | None = None  # of a method with a calibrated threshold
    fit_seconds: float | None = None
    score_seconds: float | None = None
    peak_rss_mb: float | None = None
    peak_cuda_mb: float | None = None
    n_parameters: int | None = None
    device: str | None = None


@cache
def versions() -> str:
    """Return the versions of Python and of the packages that scores depend on, as ``name=version`` pairs."""
    pairs = [f"python={platform.python_version()}"]
    for name in ("ptad", "torch", "numpy", "scikit-learn", "pyod"):
        with suppress(metadata.PackageNotFoundError):
            pairs.append(f"{name}={metadata.version(name)}")
    return ";".join(pairs)


def measure(task: Task) -> Outcome:
    """Fit and score; nothing else is timed."""
    reset_peak_memory()
    cuda: Any = None
    try:
        device = resolve_device(task.device)
        if device.startswith("cuda"):
            import torch

            cuda = torch.cuda
            torch.zeros(1, device=device)  # creates the CUDA context, which is not part of the method
            cuda.reset_peak_memory_stats()
        train, test = np.load(task.train), np.load(task.test)
        _warm_up(task.method)
        peer = make_peer(task.method, random_state=task.seed, device=device, **task.settings)
        start = time.perf_counter()
        peer.fit(train)
        if cuda:
            cuda.synchronize()
        fitted = time.perf_counter()
        scores = peer.anomaly_score(test)
        if cuda:
            cuda.synchronize()
        scored = time.perf_counter()
        p_values = peer.p_value(scores)
    except Exception as error:  # the reason goes into the row of the cell; the run goes on
        return Outcome("failed", f"{type(error).__name__}: {error}")
    finally:
        if cuda:
            cuda.empty_cache()
    return Outcome(
        scores=np.asarray(scores, dtype=np.float64),
        capped=peer.capped_,
        fit_seconds=fitted - start,
        score_seconds=scored - fitted,
        p_values=p_values,
        peak_rss_mb=peak_memory_mb(),
        peak_cuda_mb=cuda.max_memory_allocated() / 2**20 if cuda else 0.0,
        n_parameters=int(peer.n_parameters_),
        device=cuda.get_device_name() if cuda else "cpu",
    )


@cache
def _warm_up(method: str) -> None:
    """Import and compile what a method of milliseconds needs before it is timed."""
    if method in CHEAP_PEERS:
        rows = np.random.default_rng(0).normal(size=(64, 3))
        make_peer(method).fit(rows).anomaly_score(rows)


def reset_peak_memory() -> None:
    """Reset the peak of earlier cells; on Linux only, elsewhere the peak is that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory_mb() -> float:
    """Return the peak memory of this process since the last reset."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
