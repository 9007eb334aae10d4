"""Atomic replacement of a folder: a reader finds the old one or the new one, whichever process is killed and when.

The new folder is filled beside the old one, as ``.NAME.<16 digits>.saving``, and exchanged with it atomically. Where
the system or the drive cannot exchange, the old folder is renamed to ``.previous`` first. The process that fills a
folder locks it: an unlocked one was left by a process that was killed, and the next one that saves or opens removes it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ptad.files import hidden_siblings, lock, sync_folder

_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


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
    target = Path(os.path.realpath(folder))  # Path.resolve raises for a link to itself
    if not staging_folders(target):
        return
    # a saver at work is waited for only if there is no folder: otherwise the folder can be read meanwhile
    with suppress(OSError), locked_folder(target.parent, wait=not target.exists()) as locked:
        if locked:
            _clean_up(target)


def staging_folders(target: Path) -> list[Path]:
    """Return the folders beside the target that were made to replace it, by savers at work or killed."""
    return hidden_siblings(target, r"[0-9a-f]{16}\.(saving|previous)")


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


@contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a folder against other processes that lock it; yield False if one of them has the lock."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # it may be written to but not listed, or be of a system that opens no folders
        yield True
        return
    try:
        yield lock(handle, wait=wait) is not False
    finally:
        os.close(handle)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two paths atomically; return False where the system or the drive cannot."""
    call = _renameat2()
    if call is None:
        return False
    sys.audit("os.rename", str(first), str(second), -1, -1)  # audit hooks see it as any rename
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _renameat2() -> Any:
    """Return the system call ``renameat2``, or None."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # imported late, for a fast start

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library of before 2018
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call
