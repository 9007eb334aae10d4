"""Atomic replacement of a folder: a reader finds the old one or the new one, whichever process is killed and when.

The new folder is filled beside the old one, as ``.NAME.<16 digits>.saving``, and exchanged with it atomically. Where
the system or the drive cannot exchange, the old folder is renamed to ``.previous`` first. The process that fills a
folder locks it: an unlocked one was left by a process that was killed, and the next one that saves or opens removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ptad.files import exchange, lock, locked_folder, sync_folder


@contextmanager
def replaced_folder(target: Path, check: Callable[[], None]) -> Iterator[Path]:
    """Yield an empty folder that replaces ``target`` at the end of the ``with`` block.

    ``check`` raises if what is at the target now must not be replaced. Of several processes that save at the same time,
    the last one to finish wins.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(target.parent):
        _clean_up(target)
        check()
        staging = target.with_name(f".{target.name}.{secrets.token_hex(8)}.saving")
        staging.mkdir()
        handle = _open_locked(staging)
    try:
        yield staging
        sync_folder(staging)
        with locked_folder(target.parent):
            check()
            _replace(staging, target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # unfinished, or the folder that was replaced
        if handle is not None:
            os.close(handle)


def recover(folder: Path) -> None:
    """Clean up after savers that were killed; a folder that one of them had renamed gets its name back."""
    target = folder.resolve()
    if not staging_folders(target):
        return
    # a saver at work is waited for only if there is no folder: otherwise the folder can be read meanwhile
    with suppress(OSError), locked_folder(target.parent, wait=not target.exists()) as locked:
        if locked:
            _clean_up(target)


def staging_folders(target: Path) -> list[Path]:
    """Return the folders beside the target that were made to replace it, by savers at work or killed."""
    pattern = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.(saving|previous)")
    try:
        with os.scandir(target.parent) as entries:
            return [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:
        return []


def _replace(staging: Path, target: Path) -> None:
    """Rename a finished folder to ``target``; the old one is named ``staging`` afterwards, or removed."""
    if not target.exists():
        staging.rename(target)
    elif not exchange(staging, target):
        previous = staging.with_suffix(".previous")
        target.rename(previous)
        try:
            staging.rename(target)
        except OSError:
            previous.rename(target)
            raise
        shutil.rmtree(previous, ignore_errors=True)


def _open_locked(folder: Path) -> int | None:
    """Open and lock a folder; None if another process has the lock, or there are no locks."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    if lock(handle, wait=False):
        return handle
    os.close(handle)
    return None


def _clean_up(target: Path) -> None:
    """Remove or restore the folders of savers that were killed; the parent folder is locked meanwhile."""
    for folder in staging_folders(target):
        if folder.suffix == ".previous" and not target.exists():
            folder.rename(target)
        elif (handle := _open_locked(folder)) is not None:  # otherwise its saver is at work
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)
