"""A folder that is replaced as a whole: a reader finds the old one or the new one, whoever is killed and whenever.

The new folder is filled beside the old one, under the hidden name ``.NAME.<16 digits>.saving``, and changes places with
it in one step. Where the system or the drive has no such step, the old one is put aside first, as ``.previous``. Who
fills a folder has it locked: what is there unlocked was left by somebody who was killed, and is cleared up by the next
one who saves or opens.
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
def new_folder(target: Path, check: Callable[[], None]) -> Iterator[Path]:
    """Yield an empty folder, which takes the name ``target`` when it has been filled; an older one is removed.

    ``check`` raises if what is at the target now must not be replaced. Of several who save at the same time, the last
    to finish wins.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(target.parent):
        _sweep(target)
        check()
        staging = target.with_name(f".{target.name}.{secrets.token_hex(8)}.saving")
        staging.mkdir()
        handle = _claimed(staging)
    try:
        yield staging
        sync_folder(staging)
        with locked_folder(target.parent):
            check()
            _put(staging, target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # what was not finished, or what was there before
        if handle is not None:
            os.close(handle)


def recover(folder: Path) -> None:
    """Clear up after savers that were killed; a folder that one of them had put aside gets its name back."""
    target = folder.resolve()
    if not left_overs(target):
        return
    # who is at work finishes first only if nothing is there: otherwise the folder can be read meanwhile
    with suppress(OSError), locked_folder(target.parent, wait=not target.exists()) as held:
        if held:
            _sweep(target)


def left_overs(target: Path) -> list[Path]:
    """Return the folders that savers have made beside the target, of those at work and of those that were killed."""
    pattern = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.(saving|previous)")
    try:
        with os.scandir(target.parent) as entries:
            return [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:
        return []


def _put(staging: Path, target: Path) -> None:
    """Give a finished folder its name; what was there before is afterwards under the name of ``staging``, or gone."""
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


def _claimed(folder: Path) -> int | None:
    """Return the open folder, locked for this process; None if it is another's, or cannot be locked."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    if lock(handle, wait=False):
        return handle
    os.close(handle)
    return None


def _sweep(target: Path) -> None:
    """Remove what killed savers have left, while the parent folder is locked."""
    for left in left_overs(target):
        if left.suffix == ".previous" and not target.exists():
            left.rename(target)
        elif (handle := _claimed(left)) is not None:  # otherwise its saver is at work
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)
