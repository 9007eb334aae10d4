"""Random moments of a process that do not depend on the speed of the machine; a part of ``random_kills.py``.

A process started with :attr:`Moments.environment` runs this file as its ``sitecustomize`` and watches which files of
one folder it opens, renames, creates and removes. An undisturbed run records the times of these events. A moment is
an event and a pause after it, drawn from the recorded times; the pause ends early at the next event or at the end of
the process. At its moment the process stops itself (SIGSTOP), and the waiting script kills it.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "PTAD_MOMENTS"
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir")


class Moments:
    """Moments at which processes stop that use files of the folder ``home``."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home, self._rule = folder, home, folder / "none"
        folder.mkdir(parents=True)
        shutil.copy(__file__, folder / "sitecustomize.py")

    @property
    def environment(self) -> dict[str, str]:
        """The environment that a process has to be started with."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        return {**os.environ, VARIABLE: json.dumps([str(self.folder), f"{self.home}/"]), "PYTHONPATH": path}

    def record(self, process: str) -> Callable[[], list[float]]:
        """Record the events of processes whose command line contains a text; return a function that reads the times."""
        times = self._add({"process": process}).with_suffix(".times")

        def read_times() -> list[float]:
            return [float(line) for line in times.read_text().split()] if times.exists() else []

        return read_times

    def choose(self, process: str, times: list[float], chance: random.Random) -> None:
        """Stop the process at a random moment, half of the time in the last quarter, where results are written."""
        low, high = times[0], times[-1]
        moment = low + (high - low) * chance.uniform(*chance.choice([(0.0, 1.0), (0.75, 1.0)]))
        event = bisect_right(times, moment)
        self._add({"process": process, "event": event, "pause": moment - times[event - 1]})

    def wait(self, ended: Callable[[], bool]) -> int | None:
        """Return the process that has stopped, or None if the work ended before."""
        while True:
            reached = next(self.folder.glob(f"{self._rule.stem}.*.reached"), None)
            if reached is not None or ended():
                self.clear()
                return None if reached is None else int(reached.name.split(".")[1])
            time.sleep(0.02)

    def clear(self) -> None:
        """Remove all moments and stop recording."""
        for rule in self.folder.glob("*.json"):
            rule.unlink(missing_ok=True)

    def _add(self, rule: dict[str, Any]) -> Path:
        self._rule = self.folder / f"{time.monotonic_ns()}.json"
        draft = self._rule.with_suffix(".new")
        draft.write_text(json.dumps(rule))
        draft.rename(self._rule)
        return self._rule


# in the watched process -----------------------------------------------------------------------------------------------


class _Watch:
    def __init__(self, folder: str, home: str) -> None:
        self._folder, self._home = folder, home
        self._counts: dict[str, int] = {}
        self._lock, self._inside = threading.Lock(), threading.local()
        self._claimed: Path | None = None  # the rule whose pause is running
        atexit.register(self._stop)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or getattr(self._inside, "now", False):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if not isinstance(path, str | os.PathLike) or not os.path.abspath(path).startswith(self._home):  # noqa: PTH100
            return
        self._inside.now = True  # reading the rules opens files, too
        try:
            self._stop()
            self._check_rules()
        finally:
            self._inside.now = False

    def _check_rules(self) -> None:
        for name in [name for name in os.listdir(self._folder) if name.endswith(".json")]:  # noqa: PTH208
            rule_file = Path(self._folder, name)
            try:
                rule = json.loads(rule_file.read_bytes())
            except FileNotFoundError:  # removed, or claimed by another process
                continue
            if rule["process"] not in " ".join(sys.orig_argv):
                continue
            if "event" not in rule:
                with rule_file.with_suffix(".times").open("a") as file:
                    file.write(f"{time.monotonic()}\n")
                continue
            with self._lock:
                self._counts[name] = self._counts.get(name, 0) + 1
                if self._counts[name] != rule["event"]:
                    continue
            claimed = rule_file.with_suffix(f".{os.getpid()}.claimed")
            try:
                rule_file.rename(claimed)
            except FileNotFoundError:
                continue
            self._claimed = claimed
            timer = threading.Timer(rule["pause"], self._stop)
            timer.daemon = True
            timer.start()

    def _stop(self) -> None:
        with self._lock:
            claimed, self._claimed = self._claimed, None
        if claimed is not None:
            claimed.rename(claimed.with_suffix(".reached"))  # outside of the watched folder
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "sitecustomize":
    sys.addaudithook(_Watch(*json.loads(os.environ[VARIABLE])))
