"""The folder that holds everything that outlives the process: models, uploaded tables and jobs.

Names inside are made here, never by a caller. Whatever appears under its final name is complete: it is written aside
and renamed.
"""

from __future__ import annotations

import errno
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ptad.errors import Option, SettingError
from ptad.files import lock
from ptad.service.reasons import FULL

STORE = (Option("store"),)
BUNDLE = "bundle"  # the model folder inside that of a model, beside what the service knows of it


class Store:
    """Folders ``models``, ``tables``, ``jobs`` and ``tmp`` below one root, locked for one service at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.models, self.tables = self.root / "models", self.root / "tables"
        self.jobs, self.tmp = self.root / "jobs", self.root / "tmp"
        try:
            for folder in (self.models, self.tables, self.jobs, self.tmp):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = (self.root / "lock").open("w")
        except OSError as error:
            raise SettingError(
                f"The store {root} cannot be used: {error.strerror or error}.", "Name a writable folder with {}.", STORE
            ) from error
        if lock(self._lock.fileno(), wait=False) is False:
            self._lock.close()
            raise SettingError(
                f"The store {root} is in use by another service.",
                "Stop that one, or name another folder with {}.",
                STORE,
            )
        for left_over in (*self.tmp.iterdir(), *self.root.glob("*/*/.*.json.*.part")):  # of a service that was killed
            remove(left_over)

    def close(self) -> None:
        """Let another service have the store."""
        self._lock.close()

    def scratch(self) -> Path:
        """A new path in ``tmp``; whatever is there is gone after a restart."""
        return self.tmp / secrets.token_hex(8)

    @contextmanager
    def staged(self, target: Path) -> Iterator[Path]:
        """A folder that takes its name once it is complete; an error leaves nothing."""
        staging = self.scratch()
        try:
            staging.mkdir()
            yield staging
            staging.rename(target)
        finally:
            remove(staging)

    def discard(self, folder: Path) -> None:
        """Remove a folder in one step as seen from outside."""
        aside = self.scratch()
        with suppress(FileNotFoundError):
            folder.rename(aside)
        remove(aside)


def check_room(folder: Path, reserve: int) -> None:
    """Refuse what needs room while less than the reserve is free."""
    if shutil.disk_usage(folder).free < reserve:
        raise OSError(errno.ENOSPC, FULL)


def new_id(letter: str) -> str:
    """An identifier that sorts by time and cannot be guessed."""
    return f"{letter}-{int(time.time() * 1000):011x}{secrets.token_hex(5)}"


def remove(path: Path) -> None:
    """Remove a file or a folder; it may be gone already."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
