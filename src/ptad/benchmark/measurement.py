"""One cell of the grid: a method on a split of a table, and its measurement inside a worker process.

The worker receives scaled rows and settings, never labels: it cannot pick an epoch, a scaling or a threshold by them.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import platform
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.peers import CHEAP_PEERS, make_peer
from ptad.devices import resolve_device


@dataclass(frozen=True)
class Cell:
    """A method, its settings, a table, a seed and a scaling.

    ``experiment`` and ``variant`` tell the rows of different studies in one file apart; the main comparison is
    experiment ``main`` with the method's name as variant.
    """

    method: str
    dataset: str
    seed: int
    scaling: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    experiment: str = "main"
    variant: str = ""

    @property
    def label(self) -> str:
        """For logs."""
        return f"{self.variant or self.method} on {self.dataset}, seed {self.seed}, {self.scaling}"


@dataclass(frozen=True)
class Task:
    """What a worker gets: where the rows are and what to do with them."""

    method: str
    settings: dict[str, Any]
    seed: int
    device: str
    train: Path
    test: Path


@dataclass(frozen=True)
class Outcome:
    """What a worker gives back; ``error`` is empty when there are scores."""

    scores: npt.NDArray[np.float64] | None = None
    error: str = ""
    capped: str = ""
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    p_values: npt.NDArray[np.float64] | None = None  # of a method with a calibrated threshold
    peak_rss_mb: float = 0.0
    peak_cuda_mb: float = 0.0
    n_parameters: int = 0
    device: str = ""


def config_hash(method: str, params: Mapping[str, Any], max_train: int | None, max_test: int | None) -> str:
    """Twelve digits that stand for everything that decides a cell's figures besides table, seed and scaling."""
    content = json.dumps([method, dict(params), max_train, max_test], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def versions() -> str:
    """Versions of what the figures depend on, as ``name=version`` pairs."""
    names = ("ptad", "torch", "numpy", "scikit-learn", "pyod")
    found = [f"python={platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name}={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ";".join(found)


def measure(task: Task) -> Outcome:
    """Fit and score; only these two are timed."""
    reset_peak_memory()
    cuda: Any = None
    try:
        device = resolve_device(task.device)
        if device.startswith("cuda"):
            import torch

            cuda = torch.cuda
            torch.zeros(1, device=device)  # making the context is not part of the method
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
    except Exception as error:  # a failed cell keeps its reason; the run goes on
        return Outcome(error=f"{type(error).__name__}: {error}")
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
    """Let a method that is done in milliseconds import and compile what it needs before it is timed."""
    if method in CHEAP_PEERS:
        rows = np.random.default_rng(0).normal(size=(64, 3))
        make_peer(method).fit(rows).anomaly_score(rows)


def serve(connection: Connection) -> None:
    """The life of a worker: say that it is ready, then measure what comes until the run is over."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            task = connection.recv()
        except EOFError:  # the run is over
            return
        connection.send(measure(task))


def _die_with_parent() -> None:
    """End this worker when the run that started it is gone, even in the middle of a cell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def reset_peak_memory() -> None:
    """Forget the peak of earlier cells; Linux only, elsewhere the peak is that of the worker's whole life."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory_mb() -> float:
    """The most memory this process held since the last reset."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
