"""What methods cost on campaign: parameters, milliseconds per training step and per scored batch.

A training step is timed as the difference between a longer and a shorter fit, so that reading, start-up and calibration
cancel out; all methods use the same batch size. Times are medians of ten repetitions with the device synchronised.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.collections import load_dataset
from ptad.benchmark.encoding import scale_columns
from ptad.benchmark.experiments.base import Measurement
from ptad.benchmark.loading import half_split
from ptad.benchmark.markdown import Table
from ptad.benchmark.peers import Peer, make_peer
from ptad.benchmark.plan import RunSettings
from ptad.benchmark.results import ResultsFolder

BATCH = 512
REPEATS = 10
#: Training rows: the cost of a step does not depend on more, the cost of reading them does.
_ROWS = 4 * BATCH


METHODS = ("knn", "mcm", "npt-ad", "ptad", "ptad-paper")


def step_settings(method: str, steps: int) -> dict[str, Any]:
    """Return the settings for so many training steps; none for a method without steps."""
    if method in ("mcm", "npt-ad"):
        return {"training": {"steps": steps, "batch_size": BATCH}}
    if method == "ptad-paper":
        network = {"network.n_steps": steps, "network.batch_size": BATCH, "network.warmup_epochs": 0}
        return {"config": {"calibration.method": "none", **network}}
    return {}


def cost_rows(directory: Path, out: Path, settings: RunSettings) -> Iterator[dict[str, Any]]:
    """Yield one row per method on the device of the settings (``auto``: both).

    Rows of the other device in an existing file come first: the two may be measured on different machines.
    """
    import torch

    data = load_dataset(directory, "campaign")
    split = half_split(data.y, 0)
    train, test = scale_columns(data.X[split.train[:_ROWS]], data.X[split.test[:BATCH]], "standard")
    devices = [settings.device]
    if settings.device == "auto":
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    yield from (row for row in ResultsFolder(out.parent).measurement("cost") if row["device"] not in devices)
    for device, name in product(devices, METHODS):
        yield measure_cost(name, device, train, test)


def format_cost(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the rows as a table."""
    columns = {
        "Method": [f"{row['method']}, {row['device']}" for row in rows],
        "Parameters (M)": [f"{int(row['n_parameters']) / 1e6:.2f}" for row in rows],
        "Training step (ms)": ["–" if row["step_ms"] == "" else f"{float(row['step_ms']):.2f}" for row in rows],
        f"Scoring {BATCH} rows (ms)": [f"{float(row['inference_ms']):.2f}" for row in rows],
    }
    notes = ["the paper prints 2.97 M parameters for PTAD and 0.23 M for MCM: those of 21 columns, not campaign's 62"]
    return [Table.of_columns(f"Cost on campaign, batch of {BATCH}, median of {REPEATS}", columns, notes)]


def measure_cost(
    method: str, device: str, train: npt.NDArray[np.float32], test: npt.NDArray[np.float32], repeats: int = REPEATS
) -> dict[str, Any]:
    """Return one row: parameters, milliseconds per step, milliseconds per scored batch."""
    # On a GPU both fits have to be long enough for the step to be captured as a graph.
    short, long = (2, 5) if device == "cpu" else (60, 160)
    trained = bool(step_settings(method, short))

    def fit(steps: int) -> Peer:
        return make_peer(method, device=device, **step_settings(method, steps)).fit(train)

    def fit_ms(steps: int) -> float:
        return timed_ms(lambda: fit(steps), device)

    peer = fit(short)
    peer.anomaly_score(test)  # not timed: the first call does work that is done once per process
    steps = [fit_ms(long) - fit_ms(short) for _ in range(repeats if trained else 0)]
    inference = [timed_ms(lambda: peer.anomaly_score(test), device) for _ in range(repeats)]
    return {
        "method": method,
        "device": device,
        "n_parameters": peer.n_parameters_,
        "step_ms": statistics.median(steps) / (long - short) if trained else "",
        "inference_ms": statistics.median(inference),
        "batch": BATCH,
        "repeats": repeats,
    }


def timed_ms(action: Callable[[], Any], device: str) -> float:
    """Return how many milliseconds a call takes."""
    import torch

    synchronise: Callable[[], Any] = torch.cuda.synchronize if device != "cpu" else lambda: None
    synchronise()
    start = time.perf_counter()
    action()
    synchronise()
    return 1000.0 * (time.perf_counter() - start)


COST = Measurement("Cost", cost_rows, format_cost)
