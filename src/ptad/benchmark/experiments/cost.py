"""What methods cost on campaign: parameters, milliseconds per training step and per scored batch.

A training step is timed as the difference between a longer and a shorter fit, so that reading, start-up and calibration
cancel out; all methods use the same batch. Figures are medians of ten repetitions with the device synchronised.
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
from ptad.benchmark.experiments.variants import Measurement
from ptad.benchmark.loading import half_split
from ptad.benchmark.markdown import Table
from ptad.benchmark.peers import Peer, make_peer
from ptad.benchmark.plan import RunSettings
from ptad.benchmark.store import Results

BATCH = 512
REPEATS = 10
#: Rows kept for timing: the cost of a step does not depend on more, the cost of reading them does.
_ROWS = 4 * BATCH

#: ``(steps) -> settings`` of each method; None where there is no training step.
METHODS: dict[str, Callable[[int], dict[str, Any]] | None] = {
    "knn": None,
    "mcm": lambda steps: {"training": {"steps": steps, "batch_size": BATCH}},
    "npt-ad": lambda steps: {"training": {"steps": steps, "batch_size": BATCH}},
    "ptad": None,
    "ptad-paper": lambda steps: {"config": single_network(steps)},
}


def single_network(steps: int) -> dict[str, Any]:
    """The network of the paper preset, trained for so many steps and fitted once: the step of the method itself."""
    network = {"n_steps": steps, "batch_size": BATCH, "warmup_epochs": 0}
    return {"calibration.method": "none", **{f"network.{key}": value for key, value in network.items()}}


def cost_rows(directory: Path, out: Path, settings: RunSettings) -> Iterator[dict[str, Any]]:
    """Measure all methods on the device asked for (``auto``: both).

    Rows of the other device that stand in the file are kept: the two are measured on different machines, perhaps.
    """
    import torch

    data = load_dataset(directory, "campaign")
    split = half_split(data.y, 0)
    train, test = scale_columns(data.X[split.train[:_ROWS]], data.X[split.test[:BATCH]], "standard")
    devices = [settings.device]
    if settings.device == "auto":
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    yield from (row for row in Results(out.parent).measurement("cost") if row["device"] not in devices)
    for device, name in product(devices, METHODS):
        yield measure_cost(name, device, train, test)


def read_cost(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The rows of ``cost.csv`` as a table."""
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
    """One row: parameters, milliseconds per step, milliseconds per scored batch."""
    # Graph capture needs its warm-up behind it in both fits, hence the longer fits on a GPU.
    short, long = (2, 5) if device == "cpu" else (60, 160)
    trained = METHODS[method] is not None

    def fitted(steps: int) -> Peer:
        settings = METHODS[method]
        return make_peer(method, device=device, **({} if settings is None else settings(steps))).fit(train)

    def fit_ms(steps: int) -> float:
        return timed_ms(lambda: fitted(steps), device)

    peer = fitted(short)  # what is made once per process is not part of a step
    peer.anomaly_score(test)
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
    import torch

    synchronise: Callable[[], Any] = torch.cuda.synchronize if device != "cpu" else lambda: None
    synchronise()
    start = time.perf_counter()
    action()
    synchronise()
    return 1000.0 * (time.perf_counter() - start)


COST = Measurement("Cost", cost_rows, read_cost)
