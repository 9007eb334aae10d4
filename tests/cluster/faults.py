"""Killing things on a cluster while a job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stopping import Stop

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


class Saboteur(threading.Thread):
    """Acts once, while a process of the cluster is held at a stop; lets it go on afterwards."""

    def __init__(self, stop: Stop, act: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.stop, self.act = stop, act

    def run(self) -> None:
        try:
            self.stop.wait()
            self.act()
        finally:
            self.stop.release()
