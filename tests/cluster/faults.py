"""Killing things on a cluster while a job runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def worker_pids(name: str) -> list[int]:
    """Processes of the cluster that run a task or an actor whose title holds ``name``."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        title = " ".join(process.info["cmdline"] or ())
        if title.startswith("ray::") and name in title:
            found.append(process.pid)
    return found


class Saboteur(threading.Thread):
    """Acts once, as soon as a condition holds, unless the job ends before."""

    def __init__(self, condition: Callable[[], bool], act: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.condition, self.act = condition, act
        self.acted = False
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            if self.condition():
                self.act()
                self.acted = True
                return
            time.sleep(0.01)

    def __enter__(self) -> Saboteur:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def kill_worker(name: str) -> int:
    """Kill the first such process without a word."""
    pid = worker_pids(name)[0]
    os.kill(pid, signal.SIGKILL)
    return pid
