"""Stop a process at an event of its own: no verdict then depends on how fast the machine is.

A process that was started with :attr:`Stops.environment` runs this very file as its ``sitecustomize`` and watches the
files that it opens, renames and removes. What it leaves behind when it is killed is what it did to files, so an event
among these stands for every moment between it and the one before.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "PTAD_TEST_STOPS"
#: Seconds after which something that never happens counts as hung: so many that a machine with ten times too much to
#: do does not reach them.
HANG = 1800.0


def wait_until(condition: Callable[[], Any], why_not: Callable[[], str] = lambda: "it never happened") -> Any:
    """Return what the condition finds, once it finds something."""
    end = time.monotonic() + HANG
    while not (found := condition()):
        assert time.monotonic() < end, why_not()
        time.sleep(0.01)
    return found


def in_child(action: Callable[[], object]) -> int:
    """Fork a process that does something and ends, with 1 if it raised; return its number."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def exit_code(child: int) -> int:
    """Wait for a child process to end."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Stop:
    """One place where one process stops: the first that comes there."""

    def __init__(self, rule: Path) -> None:
        self._rule = rule

    @property
    def pid(self) -> int | None:
        """The process that has come there, or None."""
        found = next(self._rule.parent.glob(f"{self._rule.stem}.*.reached"), None)
        return None if found is None else int(found.name.split(".")[1])

    def wait(self, why_not: Callable[[], str] = lambda: "nothing came to the stop") -> int:
        """Wait until a process has come there."""
        found: int = wait_until(lambda: self.pid, why_not)
        return found

    def release(self) -> None:
        """Let a held process go on; if none has come, none will stop."""
        self._rule.with_suffix(".released").touch()
        self._rule.unlink(missing_ok=True)


class Stops:
    """Where processes of a test stop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(__file__, folder / "sitecustomize.py")

    @property
    def environment(self) -> dict[str, str]:
        """What a process has to be started with."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        return {VARIABLE: str(self.folder), "PYTHONPATH": path}

    def add(self, pattern: str, count: int = 1, *, how: str = "kill", events: tuple[str, ...] = ("os.rename",)) -> Stop:
        """Stop a process just before its ``count``-th event with a path like ``pattern`` (a rename: the new name).

        ``how``: ``kill`` (SIGKILL), ``interrupt`` (SIGINT), ``hold`` (it waits until it is killed or released) or
        ``full`` (it goes on and finds the disk full, this once).
        """
        rule = self.folder / f"stop{len(list(self.folder.glob('stop*')))}.json"
        text = json.dumps({"pattern": pattern, "count": count, "how": how, "events": events})
        rule.with_suffix(".new").write_text(text)
        rule.with_suffix(".new").rename(rule)
        return Stop(rule)


# in the watched process -----------------------------------------------------------------------------------------------


class _Watch:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._inside = threading.local()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.remove") or getattr(self._inside, "now", False):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if not isinstance(path, str | os.PathLike):
            return
        self._inside.now = True  # looking at the rules opens files, too
        try:
            self._look(event, os.path.abspath(path))  # noqa: PTH100
        finally:
            self._inside.now = False

    def _look(self, event: str, path: str) -> None:
        for name in sorted(os.listdir(self._folder)):  # noqa: PTH208
            if not name.endswith(".json"):
                continue
            try:
                rule = json.loads(Path(self._folder, name).read_bytes())
            except FileNotFoundError:  # another process has come there
                continue
            if event not in rule["events"] or not fnmatch.fnmatch(path, rule["pattern"]):
                continue
            with self._lock:
                self._counts[name] = self._counts.get(name, 0) + 1
                if self._counts[name] < rule["count"]:
                    continue
            self._stop(Path(self._folder, name), rule["how"])

    def _stop(self, rule: Path, how: str) -> None:
        try:
            rule.rename(rule.with_suffix(f".{os.getpid()}.reached"))
        except FileNotFoundError:
            return
        if how == "hold":
            while not rule.with_suffix(".released").exists():
                time.sleep(0.01)
        elif how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/secret/path")
        else:
            signal.raise_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)


if __name__ == "sitecustomize":
    sys.addaudithook(_Watch(os.environ[VARIABLE]))
