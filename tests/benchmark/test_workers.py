"""Worker processes that are killed in the middle of a cell."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ptad.benchmark.measurement import Outcome, Task
from ptad.benchmark.workers import MAX_TRIES, run_tasks
from stopping import HANG


def kill_reader(pipe: Path) -> None:
    """Kill the worker as soon as it opens the pipe, which it takes for its training rows."""
    while True:
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    for child in psutil.Process().children():
        if "spawn_main" in " ".join(child.cmdline()):
            child.kill()
            while psutil.pid_exists(child.pid):  # not wait(): the exit code is for the pool to collect
                time.sleep(0.01)
    os.close(writer)


@pytest.mark.slow
def test_a_killed_worker_is_no_failure_unless_the_cell_kills_every_one(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    names = ("once", "always")
    for name in names:
        os.mkfifo(tmp_path / name)
    killed: list[str] = []

    def sabotage() -> None:
        kill_reader(tmp_path / "once")
        (tmp_path / "rows").symlink_to(tmp_path / "rows.npy")
        (tmp_path / "rows").replace(tmp_path / "once")  # at once: the next worker must find one or the other
        killed.append("once")
        for _ in range(MAX_TRIES):
            kill_reader(tmp_path / "always")
            killed.append("always")

    thread = threading.Thread(target=sabotage, daemon=True)
    thread.start()
    outcomes: dict[int, Outcome] = {}
    tasks = [Task("pca", {}, 0, "cpu", tmp_path / name, tmp_path / "rows.npy") for name in names]
    run_tasks(
        enumerate(tasks),
        lambda number, outcome: outcomes.update({number: outcome}),
        n_workers=1,
    )
    thread.join(HANG)
    assert killed == ["once", *["always"] * MAX_TRIES]
    assert outcomes[0].status == "ok" and outcomes[0].scores is not None and outcomes[0].scores.shape == (40,)
    assert outcomes[1] == Outcome("failed", "the worker process died (exit code -9), 3 times")
