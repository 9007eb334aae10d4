"""How fast the default is, each figure beside its bound: against PyOD's KNN and MCM in the same run, growth, latency.

    ptad benchmark experiment speed --part small,latency --threads 2

Ratios are taken in one run on one machine; absolute times are bounds on a GPU only, save for two small ones. Tables are
random with correlated columns: a few hidden factors, mixed and bent, and noise. Rows of parts that are not measured
this time stay in ``speed.csv``.
"""

from __future__ import annotations

import csv
import itertools
import math
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.cell import peak_memory_mb, reset_peak_memory
from ptad.benchmark.experiments.cost import BATCH, read_rows, single_network, step_ms, timed_ms
from ptad.benchmark.runner import RunSettings
from ptad.benchmark.tables import Table, TableCell
from ptad.errors import SettingError
from ptad.estimator import PTAD
from ptad.peers import make_peer
from ptad.peers.mcm import Mcm
from ptad.peers.pyod import pyod_class

Matrix = npt.NDArray[np.float32]
#: Times a table may take per ten-fold size and still count as linear; the rest is fixed cost and noise.
_LINEAR = 1.2


@dataclass(frozen=True)
class Speed:
    """One measured figure.

    Attributes
    ----------
    part, what, unit : str
        Where it belongs, what it is, in which unit.
    value : float
        The figure.
    bound, goal : str
        What is asked at least, and what is aimed at, such as ``<= 4``; empty for figures without one.
    holds : str
        ``goal``, ``bound`` or ``no``: how far the figure meets them.
    device : str
        Where it was measured.
    """

    part: str
    what: str
    value: float
    unit: str
    bound: str
    goal: str
    holds: str
    device: str


@dataclass(frozen=True)
class Sizes:
    """Sizes of all tables, and changes to the default's configuration; tests take smaller ones."""

    columns: int = 62
    train: int = 18_000
    test: int = 23_000
    large: int = 200_000
    small: tuple[int, int] = (300, 30)
    score_rows: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    fit_rows: tuple[int, ...] = (1_000, 10_000, 100_000)
    fit_columns: tuple[int, ...] = (10, 50, 100, 500)
    fit_columns_rows: int = 2_000
    repeats: int = 5
    calls: int = 200
    mcm_steps: int = 200
    config: Mapping[str, Any] = field(default_factory=dict)


class Bench:
    """Runs the parts and collects their figures."""

    def __init__(self, device: str, threads: int, sizes: Sizes) -> None:
        self.device = device
        self.threads = threads
        self.sizes = sizes
        self.rows: list[Speed] = []

    def record(self, part: str, what: str, value: float, unit: str, bound: str = "", goal: str = "") -> None:
        """Keep a figure and judge it."""
        holds = ""
        if bound or goal:
            holds = "goal" if goal and _meets(value, goal) else "bound" if bound and _meets(value, bound) else "no"
        self.rows.append(Speed(part, what, float(f"{value:.4g}"), unit, bound, goal, holds, _device_name(self.device)))

    def seconds(self, action: Callable[[], object]) -> float:
        """Seconds of one call with the device synchronised."""
        return timed_ms(action, self.device) / 1000

    def fit(self, rows: Matrix) -> PTAD:
        """A default detector."""
        config = dict(self.sizes.config) or None
        return PTAD(config=config, device=self.device, random_state=0, verbose=0).fit(rows)

    def knn(self) -> None:
        """Scoring against PyOD's KNN."""
        s = self.sizes
        train, test = correlated(s.train, s.columns, 0), correlated(s.test, s.columns, 1)
        detector = self.fit(train)
        detector.anomaly_score(test[:64])
        ours = min(self.seconds(lambda: detector.anomaly_score(test)) for _ in range(2))
        self.record("knn", f"PTAD scores {s.test} x {s.columns}", ours, "s")
        theirs = pyod_class("KNN")(n_neighbors=5, n_jobs=self.threads).fit(train[:2_000].astype(np.float64))
        for n_rows, bound, goal in ((s.train, "<= 4", "<= 1"), (s.large, "< 1", "")):
            # What scoring uses; KNN's own fit would score all training rows first, which is not asked here.
            theirs.neigh_.fit(correlated(n_rows, s.columns, 0).astype(np.float64))
            rows = test.astype(np.float64)
            seconds = self.seconds(partial(theirs.decision_function, rows))
            self.record("knn", f"PyOD's KNN fitted on {n_rows} scores the same", seconds, "s")
            self.record("knn", f"PTAD against KNN fitted on {n_rows}", ours / seconds, "times", bound, goal)

    def fit_mcm(self) -> None:
        """Fitting against MCM, whose steps are all alike: some are timed and scaled up to all."""
        train = correlated(self.sizes.train, self.sizes.columns, 0)
        ours = self.seconds(lambda: self.fit(train))
        settings = Mcm.default_training
        wanted = min(settings.epochs * math.ceil(len(train) / settings.batch_size), settings.max_steps)
        timed = min(wanted, self.sizes.mcm_steps)
        peer = make_peer("mcm", device=self.device, training={"steps": timed})
        theirs = self.seconds(lambda: peer.fit(train)) * wanted / timed
        shape = f"{self.sizes.train} x {self.sizes.columns}"
        self.record("fit", f"PTAD fits {shape}", ours, "s")
        self.record("fit", f"MCM fits {shape} ({timed} of {wanted} steps, scaled up)", theirs, "s")
        self.record("fit", "PTAD against MCM", ours / theirs, "times", "<= 3", "<= 1")

    def small(self) -> None:
        """A small table."""
        n_rows, n_columns = self.sizes.small
        train = correlated(n_rows, n_columns, 0)
        self.fit(train[:40])  # imports and first calls are not part of it
        seconds = self.seconds(lambda: self.fit(train))
        self.record("small", f"PTAD fits {n_rows} x {n_columns}", seconds, "s", "<= 15", "<= 5")

    def latency(self) -> None:
        """One row at a time."""
        detector = self.fit(correlated(self.sizes.small[0], self.sizes.small[1], 0))
        rows = correlated(self.sizes.calls, self.sizes.small[1], 1)
        detector.anomaly_score(rows[:1])
        times = [timed_ms(partial(detector.anomaly_score, row[None]), self.device) for row in rows]
        self.record("latency", "one row, median", statistics.median(times), "ms", "<= 5", "<= 1")
        self.record("latency", "one row, 99 %", float(np.quantile(times, 0.99)), "ms")

    def growth_rows(self) -> None:
        """Scoring more and more rows: time and memory beyond the rows themselves."""
        s = self.sizes
        detector = self.fit(correlated(min(s.train, 5_000), s.columns, 0))
        times, extra = [], []
        for n_rows in s.score_rows:
            rows = correlated(n_rows, s.columns, 1)
            before = _memory_mb()
            reset_peak_memory()
            times.append(self.seconds(partial(detector.anomaly_score, rows)))
            extra.append(max(0.0, peak_memory_mb() - before))
            self.record("growth-rows", f"PTAD scores {n_rows} x {s.columns}", times[-1], "s")
            self.record("growth-rows", f"memory beyond the {n_rows} rows", extra[-1], "MB")
        self._growth("growth-rows", "scoring time per ten-fold rows", s.score_rows, times)
        spread = max(extra[-1] - extra[0], 0.0) / max(extra[0], 100.0)
        self.record("growth-rows", "growth of that memory", spread, "times", "<= 1")

    def growth_fit(self) -> None:
        """Fitting more rows."""
        times = []
        for n_rows in self.sizes.fit_rows:
            rows = correlated(n_rows, self.sizes.columns, 0)
            times.append(self.seconds(partial(self.fit, rows)))
            self.record("growth-fit", f"PTAD fits {n_rows} x {self.sizes.columns}", times[-1], "s")
        self._growth("growth-fit", "fit time per ten-fold rows", self.sizes.fit_rows, times)

    def growth_columns(self) -> None:
        """Fitting and scoring more columns."""
        times = []
        for n_columns in self.sizes.fit_columns:
            rows = correlated(self.sizes.fit_columns_rows, n_columns, 0)
            times.append(self.seconds(partial(self.fit, rows)))
            self.record("growth-columns", f"PTAD fits {len(rows)} x {n_columns}", times[-1], "s")
        self._growth("growth-columns", "fit time per ten-fold columns", self.sizes.fit_columns, times)

    def gpu(self) -> None:
        """A training step, one batch and a large batch on the GPU."""
        s = self.sizes
        train = correlated(4 * BATCH, s.columns, 0)
        eager = {"graph": False, "batch_size": BATCH}
        ours = step_ms("ptad", self.device, lambda n: {"config": single_network(n)}, train, s.repeats)
        mcm = step_ms("mcm", self.device, lambda n: {"training": {**eager, "steps": n}}, train, s.repeats)
        self.record("gpu", f"PTAD's training step, {BATCH} x {s.columns}", ours, "ms", "< 4", "< 2")
        self.record("gpu", "MCM's eager training step", mcm, "ms")
        self.record("gpu", "PTAD's step against MCM's", ours / mcm, "times", "< 1")
        detector = self.fit(correlated(s.train, s.columns, 0))
        batch, large = correlated(BATCH, s.columns, 1), correlated(s.score_rows[-1], s.columns, 2)
        for rows in (batch, large[: 100 * BATCH]):
            detector.anomaly_score(rows)
        times = [timed_ms(lambda: detector.anomaly_score(batch), self.device) for _ in range(10 * s.repeats)]
        self.record("gpu", f"scoring {BATCH} x {s.columns}", statistics.median(times), "ms", "< 1", "< 0.3")
        rate = len(large) / min(self.seconds(lambda: detector.anomaly_score(large)) for _ in range(2))
        self.record("gpu", f"rows scored per second, {len(large)} at once", rate, "rows/s", ">= 1e6", ">= 4e6")

    def _growth(self, part: str, what: str, sizes: Sequence[int], times: Sequence[float]) -> None:
        """Factor per ten-fold size over the last step, where fixed cost weighs least; 10 is linear."""
        for (n, t), (m, u) in itertools.pairwise(zip(sizes, times, strict=True)):
            factor = 10 ** (np.log(u / t) / np.log(m / n))
            last = m == sizes[-1]
            self.record(part, f"{what}, {n} to {m}", factor, "times", f"<= {10 * _LINEAR:g}" if last else "")


#: The parts by name, in the order of the table.
PARTS: dict[str, Callable[[Bench], None]] = {
    "gpu": Bench.gpu,
    "knn": Bench.knn,
    "fit": Bench.fit_mcm,
    "small": Bench.small,
    "latency": Bench.latency,
    "growth-rows": Bench.growth_rows,
    "growth-fit": Bench.growth_fit,
    "growth-columns": Bench.growth_columns,
}


def speed_tables(
    directory: Path, out: Path, settings: RunSettings, parts: Sequence[str] = (), sizes: Sizes | None = None
) -> list[Table]:
    """Measure the parts; write ``speed.csv`` beside ``out``. The part ``gpu`` needs a GPU and is left out without."""
    import torch

    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SettingError(f"The experiment 'speed' has no part {unknown[0]!r}. Choose from: {', '.join(PARTS)}.")
    on_gpu = settings.device != "cpu" and torch.cuda.is_available()
    if "gpu" in parts and not on_gpu:
        raise SettingError(
            "The part 'gpu' of the experiment 'speed' needs a GPU: use --device cuda where there is one."
        )
    chosen = list(parts) or (["gpu"] if on_gpu else [part for part in PARTS if part != "gpu"])
    path = out.with_name("speed.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    before = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    bench = Bench("cuda" if on_gpu else "cpu", settings.threads, sizes or Sizes())
    try:
        for part in chosen:
            PARTS[part](bench)
            _write(path, part, [row for row in bench.rows if row.part == part])
    finally:
        torch.set_num_threads(before)
    return [read_speed(path)]


def read_speed(path: Path) -> Table:
    """The file of this experiment as a table."""
    names = [column.name for column in fields(Speed)]
    return Table("Speed of the default", names, [[TableCell(row[n]) for n in names] for row in read_rows(path)])


def correlated(n_rows: int, n_columns: int, seed: int) -> Matrix:
    """A random table whose columns depend on each other; the same columns for every seed, other rows."""
    mixing = np.random.default_rng(12345)
    n_factors = max(2, n_columns // 4)
    weights = (mixing.normal(size=(n_factors, n_columns)) / np.sqrt(n_factors)).astype(np.float32)
    rng = np.random.default_rng(seed)
    rows: Matrix = rng.standard_normal((n_rows, n_factors), dtype=np.float32) @ weights
    np.tanh(rows[:, ::3], out=rows[:, ::3])  # every third column bends
    rows += 0.1 * rng.standard_normal(rows.shape, dtype=np.float32)
    return rows


def _write(path: Path, part: str, rows: Sequence[Speed]) -> None:
    """Replace the rows of a part measured on this device, keep all others."""
    device = rows[0].device
    new = [{name: str(value) for name, value in asdict(row).items()} for row in rows]
    kept = [row for row in read_rows(path) if (row["part"], row["device"]) != (part, device)]
    order = list(PARTS)
    merged = sorted([*kept, *new], key=lambda row: (order.index(row["part"]), row["device"]))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [column.name for column in fields(Speed)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged)


def _meets(value: float, bound: str) -> bool:
    sign, _, limit = bound.partition(" ")
    number = float(limit)
    return {"<": value < number, "<=": value <= number, ">=": value >= number}[sign]


def _device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else f"cpu ({platform.machine()})"


def _memory_mb() -> float:
    """Memory in use now."""
    reset_peak_memory()
    time.sleep(0.01)
    return peak_memory_mb()
