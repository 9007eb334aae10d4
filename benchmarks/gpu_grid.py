"""Measure the deep methods and the paper's experiments on one GPU, several processes at once, within a time budget.

    python benchmarks/gpu_grid.py --data DIR --out results.csv --budget 900
    python benchmarks/gpu_grid.py --data DIR --out results.csv --budget 900 --collection macro --sample 100

The results file is continued where it stands: give it again to go on. Cells run in this order, so that a budget that
ends early costs the least:

1. every deep method on every table, seed 0, under both column scalings; PTAD's paper preset;
2. seeds 1 and 2 under the scaling that was better on seed 0; the experiments, seed 0, cheap cells first;
3. the experiments, further seeds; expensive cells of the second group;
4. the cost table, alone on the device.

Cells that failed (two wide networks may not fit in memory together) are tried once more by few workers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptad.benchmark.collections import DatasetInfo, catalogue, open_collection
from ptad.benchmark.experiments import EXPERIMENTS, run_measurement
from ptad.benchmark.experiments.paper import synthetic_loader
from ptad.benchmark.peers import make_peer
from ptad.benchmark.plan import Cell, RunSettings, make_cells, make_grid, parse_seeds
from ptad.benchmark.results import ResultsFile, Row
from ptad.benchmark.runner import run_grid
from ptad.benchmark.summary import better_scaling

DEEP = ("mcm", "dte-c", "icl", "goad", "neutralad", "deepsvdd", "autoencoder", "npt-ad", "mcm-npt")
PAPER = "ptad-paper"
GRIDS = ("ablation", "distance", "backbones", "counts", "weights", "anomaly-types", "context", "paper-grid")
MAX_TRAIN, MAX_TEST = 20_000, 40_000
HEAVY = 25.0  # seconds; costlier cells wait for the cheap ones

#: Stands for the size of a table outside the catalogue.
TYPICAL = DatasetInfo(name="", title="", file="", rows=8_000, columns=10, anomalies=1_000, origin="", how="")
#: Estimated milliseconds of a captured training step on a data-centre GPU shared by several processes.
STEP_MS = {"deepsvdd": 0.2, "autoencoder": 0.25, "neutralad": 0.4, "dte-c": 0.3, "mcm": 0.5, "goad": 0.8, "icl": 0.5}


def main() -> None:
    """Run the parts that the command line names."""
    options = _options()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    collection = open_collection(options.collection, options.data)
    paper = collection.name == "paper"
    loader = synthetic_loader(collection.load) if paper else collection.load
    settings = RunSettings(
        device=options.device,
        jobs=options.jobs,
        # Killing a client of the multi-process service breaks the others: they die of illegal memory accesses.
        time_limit=None if options.shared else options.time_limit,
        max_train=MAX_TRAIN if paper else None,
        max_test=MAX_TEST if paper else None,
        large_first=False,
    )
    results = ResultsFile(options.out)
    tables = collection.select(options.datasets or "all", options.sample)
    methods = options.methods.split(",") if options.methods else [*DEEP, PAPER]

    def collect(rows: list[Row]) -> Callable[[Row], None]:
        def on_row(row: Row) -> None:
            rows.append(row)
            if options.verbose:
                _print_row(row)

        return on_row

    def left() -> float:
        return float(options.budget) - (time.monotonic() - start)

    def run(cells: list[Cell], title: str, reserve: float = 0.0) -> None:
        if options.max_steps:
            cells = [shortened(cell, options.max_steps) for cell in cells]
        seconds = sum(estimate(cell) for cell in cells)
        print(f"{title}: {len(cells)} cells, about {seconds:.0f} s of one process, {left():.0f} s left", flush=True)
        if options.plan:
            return
        for jobs, retry in ((options.jobs, False), (max(1, options.jobs // 4), True)):
            if left() - reserve > 5:
                rows: list[Row] = []
                with suppress(TimeoutError), time_limit(left() - reserve):
                    run_grid(cells, results, loader, replace(settings, jobs=jobs, retry=retry), collect(rows))
                print(f"  {len(rows)} rows {dict(Counter(row['status'] for row in rows))}, {left():.0f} s left")

    with mps_daemon(options.device if options.shared else "cpu"):
        if "main" in options.parts:
            run(first_cells(methods, tables), "seed 0")
        later = []
        if "main" in options.parts and paper:  # elsewhere the split is fixed
            later += staged(second_cells(methods, tables, results.read()), 0)
        if "experiments" in options.parts and paper:
            names = [name for name in GRIDS if not options.experiments or name in options.experiments.split(",")]
            for stage, seed in enumerate(parse_seeds(options.seeds), 1):
                later += staged(experiment_cells(names, methods, tables, seed, bool(options.datasets)), stage)
        later.sort(key=lambda item: item[:2])
        with_cost = "cost" in options.parts and paper
        if later:
            run([cell for _, _, cell in later], "seeds 1 and 2, experiments", reserve=120.0 if with_cost else 0.0)
    # Without the service and with nothing else on the device, since it is timed.
    if with_cost and not options.plan and left() > 60:
        run_measurement("cost", options.data, options.out, settings)
    print(f"finished with {left():.0f} s left")


def first_cells(methods: list[str], tables: list[str]) -> list[Cell]:
    """Return seed 0 under both scalings, cheap cells first, so that a budget that ends early costs the fewest."""
    return sorted(make_grid(methods, tables, [0]), key=estimate)


def second_cells(methods: list[str], tables: list[str], rows: Iterable[Row]) -> list[Cell]:
    """Return seeds 1 and 2 under the scaling that was better on seed 0, for methods with rows of seed 0."""
    main_rows = [row for row in rows if row["experiment"] == "main" and row["seed"] == 0]
    cells = []
    for method in methods:
        method_rows = [row for row in main_rows if row["variant"] == method]
        if method_rows:
            cells += make_grid([method], tables, [1, 2], [better_scaling(method_rows)])
    return cells


def experiment_cells(names: list[str], methods: list[str], tables: list[str], seed: int, chosen: bool) -> list[Cell]:
    """Return the cells of further experiments, restricted to some methods and, if ``chosen``, to some tables."""
    cells = []
    for name in names:
        experiment = EXPERIMENTS[name]
        datasets = experiment.datasets or tuple(catalogue())
        datasets = [table for table in datasets if not chosen or table in tables or ":" in table]
        variants = [variant for variant in experiment.variants if variant.method in methods]
        cells += make_cells(variants, datasets, [seed], experiment=name)
    return cells


def staged(cells: list[Cell], stage: int) -> list[tuple[int, float, Cell]]:
    """Return cells with their sort key: the stage, two later for expensive cells, then the cost."""
    costs = [estimate(cell) for cell in cells]
    return [(stage + 2 * (cost > HEAVY), cost, cell) for cell, cost in zip(cells, costs, strict=True)]


def estimate(cell: Cell) -> float:
    """Return the estimated seconds of a cell, from its number of steps and the size of its table."""
    info = catalogue().get(cell.dataset.partition(":")[0], TYPICAL)
    n_train = min((info.rows - info.anomalies) // 2, MAX_TRAIN)
    n_test = min(info.rows - n_train, MAX_TEST)
    peer: Any = make_peer(cell.method, **cell.settings)
    if cell.method == PAPER:
        share = peer.full_config.terms[0].n_steps / 500
        fit = 6.0 * share * (info.columns / 62) * min(1.0, n_train / 512)
        return 3.0 + fit + 1e-4 * n_test * info.columns / 62
    training = peer.schedule
    batch = min(training.batch_size, n_train)
    planned = training.steps if training.steps is not None else training.epochs * (n_train // batch)
    n_steps = float(min(planned, training.max_steps))
    if cell.method in STEP_MS:
        return 1.0 + n_steps * STEP_MS[cell.method] * (1.0 + info.columns / 200) / 1000
    # Attention between columns dominates: its cells are bounded per step, and scoring repeats it per hidden column.
    cells_per_row = 4 * info.columns**2 * (15 if cell.method == "mcm-npt" else 1)
    step = 4.0 + 20.0 * min(float(batch) * cells_per_row / 200e6, 1.0)
    passes = min(info.columns, 64) if cell.method == "npt-ad" else 1
    return 2.0 + n_steps * step / 1000 + 8e-12 * n_test * passes * cells_per_row


def shortened(cell: Cell, max_steps: int) -> Cell:
    """Return the cell with a lower limit on the steps of a deep peer; rows that reach it are marked."""
    if cell.method == PAPER:
        return cell
    training = {**dict(cell.settings.get("training", {})), "max_steps": max_steps}
    return replace(cell, settings={**cell.settings, "training": training})


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after so many seconds; cells in progress are left to the next run."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def mps_daemon(device: str) -> Iterator[None]:
    """Run NVIDIA's multi-process service if it is installed: without it the processes take turns on the GPU."""
    control = shutil.which("nvidia-cuda-mps-control")
    started, environment = False, dict(os.environ)
    if device != "cpu" and control is not None and "CUDA_MPS_PIPE_DIRECTORY" not in os.environ:
        folder = Path(f"/tmp/ptad-mps-{os.getpid()}")
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.environ["CUDA_MPS_LOG_DIRECTORY"] = str(folder)
        environment = dict(os.environ)
        started = subprocess.run([control, "-d"], check=False).returncode == 0
        if not started:
            for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
                del os.environ[name]
    print(f"multi-process service: {'on' if started else 'off'}", flush=True)
    try:
        yield
    finally:
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            if started:
                os.environ.pop(name, None)
        if started and control is not None:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run([control], input="quit\n", text=True, check=False, timeout=30, env=environment)


def _print_row(row: Row) -> None:
    value = "" if row.get("auc_pr") is None else f"{row['auc_pr']:.4f} in {row['fit_seconds']:.1f} s"
    print(
        row["experiment"], row["variant"], row["dataset"], row["seed"], row["status"], value, row["reason"], flush=True
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure deep methods and experiments on a GPU within a budget.")
    data = os.environ.get("PTAD_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, required=not data)
    parser.add_argument("--out", type=Path, default=Path("results.csv"), help="results file; continued if it exists")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds for everything")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--time-limit", type=float, default=400.0, help="seconds per cell; only with --no-mps")
    parser.add_argument("--max-steps", type=int, help="ceiling on the steps of the deep peers; marks the rows it cuts")
    parser.add_argument(
        "--no-mps",
        dest="shared",
        action="store_false",
        help="let the processes take turns on the GPU: slower, but a late one can be ended without harm to the others",
    )
    parser.add_argument("--parts", default="main,experiments,cost", help="any of main, experiments, cost")
    parser.add_argument(
        "--methods", default="", help="names separated by commas; the deep methods and the paper preset"
    )
    parser.add_argument("--collection", default="paper", help="paper, or macro: its main comparison, seed 0")
    parser.add_argument("--sample", type=int, help="only so many of its tables, drawn with a fixed seed")
    parser.add_argument("--datasets", default="", help="names separated by commas; all by default")
    parser.add_argument("--experiments", default="", help=f"any of {', '.join(GRIDS)}")
    parser.add_argument("--seeds", default="0-1", help="seeds of the experiments, one after the other")
    parser.add_argument("--plan", action="store_true", help="print cells and estimated seconds, run nothing")
    parser.add_argument("--verbose", action="store_true", help="one line per cell")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    return options


if __name__ == "__main__":
    main()
