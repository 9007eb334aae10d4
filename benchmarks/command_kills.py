"""Kills of a command of ptad, a part of ``random_kills.py``."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moments import Moments

PTAD_COMMAND = [sys.executable, "-m", "ptad"]
TRIES_PER_KILL = 5  # a process that ends before its moment is started again


def run(folder: Path, *command: str, env: dict[str, str] | None = None) -> None:
    """Run a command of ptad undisturbed."""
    done = subprocess.run([*PTAD_COMMAND, *command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ptad {' '.join(command)}: {done.stdout}{done.stderr}")


def contents(folder: Path) -> set[str]:
    """Return all files and folders in a folder, without the contents of models."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if "model" not in p.relative_to(folder).parts[:-1]}


@dataclass
class Command:
    """A command to kill; ``restore`` prepares its start, ``state`` returns its result."""

    folder: Path
    arguments: list[str]
    restore: Callable[[], object]
    state: Callable[[], Any]
    kill: Callable[[subprocess.Popen[bytes]], None] = subprocess.Popen.kill

    def kill_often(self, tally: Any, chance: random.Random) -> None:
        """Kill the command at random moments until enough kills are counted."""
        moments = Moments(self.folder.with_name(f"moments-{self.folder.name}"), self.folder)
        self.restore()
        before, recorded = self.state(), moments.record(" ptad ")
        run(self.folder, *self.arguments, env=moments.environment)
        moments.clear()
        times, after, files = recorded(), self.state(), contents(self.folder)
        assert before != after and times, "the command has no effect"
        for _ in range(TRIES_PER_KILL * tally.planned):
            if tally.kills == tally.planned:
                break
            self.restore()
            moments.choose(" ptad ", times, chance)
            command = [*PTAD_COMMAND, *self.arguments]
            process = subprocess.Popen(command, cwd=self.folder, env=moments.environment, stderr=subprocess.DEVNULL)
            stopped = moments.wait(lambda process=process: process.poll() is not None)  # type: ignore[misc]
            if stopped is None:
                continue
            self.kill(process)
            process.wait()
            try:
                state = self.state()
            except Exception as error:
                state = f"{type(error).__name__}: {error}"
            tally.count("before" if state == before else "after" if state == after else f"neither old nor new: {state}")
            run(self.folder, *self.arguments)
            if self.state() != after:
                tally.complain("the repeated command gave another result")
            if left := contents(self.folder) - files:
                tally.complain(f"left behind: {sorted(left)}")
