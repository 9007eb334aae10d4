"""The folder that holds everything that outlives the process: models, uploaded tables and jobs.

Names inside are generated here, never taken from a request. Whatever appears under its final name is complete: it is
written in ``tmp`` and renamed.
"""

from __future__ import annotations

import errno
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ptad.errors import SettingError
from ptad.files import lock
from ptad.service.error_messages import DISK_FULL

BUNDLE = "bundle"  # the model folder, inside the folder that also holds the metadata of the model


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
            reason = error.strerror or error
            message = f"The store {root} cannot be used: {reason}."
            raise SettingError(message, "Name a writable folder with {store}.") from error
        if lock(self._lock.fileno(), wait=False) is False:
            self._lock.close()
            message = f"The store {root} is in use by another service."
            raise SettingError(message, "Stop that one, or name another folder with {store}.")
        for leftover in (*self.tmp.iterdir(), *self.root.glob("*/*/.*.json.*.part")):  # of a service that was killed
            remove(leftover)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def temporary_path(self) -> Path:
        """Return a new path in ``tmp``, which is emptied at every start."""
        return self.tmp / secrets.token_hex(8)

    def discard(self, folder: Path) -> None:
        """Remove a folder of the store; others see it whole or not at all."""
        aside = self.temporary_path()
        with suppress(FileNotFoundError):
            folder.rename(aside)
        remove(aside)

    def check_space(self, reserve: int) -> None:
        """Raise the error of a full disk if fewer bytes than the reserve are free."""
        if shutil.disk_usage(self.root).free < reserve:
            raise OSError(errno.ENOSPC, DISK_FULL)


def new_id(letter: str) -> str:
    """Return an identifier that sorts by time and cannot be guessed."""
    return f"{letter}-{int(time.time() * 1000):011x}{secrets.token_hex(5)}"


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
