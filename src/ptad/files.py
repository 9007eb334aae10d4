"""Files that others may write, read or want at the same time: whole or not there, plain, and one writer each.

A reader finds the old file or the new one. A writer that is killed leaves nothing that looks like a result, and no
lock: the locks are those of the operating system, which end with the process.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from ptad.errors import BusyError, UserError

try:
    import fcntl
except ImportError:  # Windows: no such locks there; two writers are the user's care
    fcntl = None  # type: ignore[assignment]

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # some network drives have none
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


class NotPlainError(OSError):
    """A path is a link, a pipe, a device or a folder where a file should be."""


def open_plain(path: str | os.PathLike[str], folder: int | None = None) -> int:
    """Open a file for reading and return its handle; nothing else than a plain file is opened.

    A pipe would never end, nor would some devices, and a link leads anywhere: neither is waited for or followed. The
    path is relative to ``folder``, the handle of an open one, which stays the same when another takes its name.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotPlainError(error.errno, "it is not a plain file") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotPlainError(errno.EINVAL, "it is not a plain file")
    return handle


def read_exactly(handle: int, n_bytes: int) -> bytes:
    """Return that many bytes, or fewer if the file has come to its end."""
    parts = []
    while n_bytes and (part := os.read(handle, min(n_bytes, 2**28))):
        parts.append(part)
        n_bytes -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_synced(path: Path, blob: bytes) -> None:
    """Write a file and see that its bytes are on the disk."""
    with path.open("wb") as file:
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())


class NewFile:
    """A file that is written to ``temporary`` and takes its name in one step, once its bytes are on the disk.

    Killed at any moment, the old file or the new one is there; an exception in the ``with`` block keeps the old one.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")

    def finish(self) -> None:
        """Give the file its name."""
        with self.temporary.open("r+b") as file:
            os.fsync(file.fileno())
        self.temporary.replace(self.path)
        sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove what was not finished."""
        with suppress(OSError):
            self.temporary.unlink(missing_ok=True)

    def __enter__(self) -> Path:
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.discard()


def write_whole(path: Path, blob: bytes) -> None:
    """Put a file under its name in one step."""
    with NewFile(path) as temporary:
        temporary.write_bytes(blob)


def write_json(path: Path, content: Any) -> None:
    """Replace a JSON file; a reader finds the old one or the new one, also after a crash."""
    write_whole(path, json.dumps(content, allow_nan=False).encode())


def read_json(path: Path) -> Any:
    """Read a JSON file, or None if there is none that can be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def sync_folder(folder: Path) -> None:
    """Put a rename on the disk; where folders cannot be opened (Windows) renames are durable by themselves."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def is_full(error: BaseException) -> bool:
    """Whether something could not be written for want of space; Arrow hands on an error of the system as text."""
    return getattr(error, "errno", None) in _NO_SPACE or any(os.strerror(n) in str(error) for n in _NO_SPACE)


def unwritable(path: str | os.PathLike[str], error: BaseException, kind: type[UserError]) -> UserError:
    """Return the error for something that cannot be written, with the reason in words."""
    text = getattr(error, "strerror", None) or str(error)
    name = "standard output" if str(path) == "-" else str(path)
    if is_full(error):
        return kind(
            f"{name} cannot be written: no space left on the device. Free some space or name another place; what was "
            "there before is unchanged."
        )
    wanted = getattr(error, "filename", None)
    if isinstance(error, FileNotFoundError) and wanted is not None and not Path(wanted).parent.exists():
        return kind(
            f"{name} cannot be written: there is no folder {Path(wanted).parent}. Make it, or name another place."
        )
    if not isinstance(error, OSError):  # what is written does not suit the format
        return kind(f"{name} cannot be written: {text[:300]}. Choose another format, such as Parquet.")
    return kind(f"{name} cannot be written: {text}. Check the folder, its permissions and the free space.")


@contextmanager
def refused(path: str | os.PathLike[str], kind: type[UserError]) -> Iterator[None]:
    """Errors of the system inside are those of an output that cannot be written."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error, kind) from error


# one writer at a time -------------------------------------------------------------------------------------------------


def lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file or folder for this process; return whether it is ours, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return None if error.errno in _NO_LOCKS else False
    return True


@contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a folder for a moment, against others who do the same; yields False if another holds it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # it may be written to but not listed, or be of a system that opens no folders
        yield True
        return
    try:
        yield lock(handle, wait=wait) is not False
    finally:
        os.close(handle)


class OutputLock:
    """One writer per output: a second one is refused at once, with the reason.

    The lock is on the hidden file ``.OUT.lock`` and belongs to the process: after ``kill -9`` the file may stay, the
    lock does not.
    """

    def __init__(self, out: Path) -> None:
        """Take the lock; raise :class:`BusyError` if another writer has it, ``OSError`` if nothing can be written."""
        self._path = out.with_name(f".{out.name}.lock")
        self._handle: int | None = None
        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
            if lock(handle, wait=False) is False:
                owner = os.read(handle, 20).decode("ascii", "replace")
                os.close(handle)
                who = f" (process {owner})" if owner.isdigit() else ""
                raise BusyError(
                    f"'{out}' is being written by another run of ptad{who}. Wait until it has ended, or name another "
                    "output."
                )
            if self._is_at(handle):
                self._handle = handle
            else:  # the writer before has just removed it: lock the file that has the name now
                os.close(handle)
        with suppress(OSError):  # on a full disk the number of the process is missing, the lock is not
            os.ftruncate(self._handle, 0)
            os.write(self._handle, str(os.getpid()).encode())
        for left in _parts(out):  # of a writer that was killed
            left.unlink(missing_ok=True)

    def release(self) -> None:
        """Let others write."""
        if self._handle is None:
            return
        with suppress(OSError):
            if self._is_at(self._handle):
                self._path.unlink()
        os.close(self._handle)
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.release()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_at(self, handle: int) -> bool:
        """Whether the file that is open still has the name of the lock."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.lstat())
        except FileNotFoundError:
            return False


def _parts(out: Path) -> list[Path]:
    """Return the files beside an output that :func:`write_whole` and others were writing to."""
    pattern = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(out.parent) as entries:
        return [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    return []


# two folders change places --------------------------------------------------------------------------------------------


def exchange(first: Path, second: Path) -> bool:
    """Let two paths change places in one step; return False where the system or the drive cannot."""
    call = _renameat2()
    if call is None:
        return False
    sys.audit("os.rename", str(first), str(second), -1, -1)  # as for any rename: whoever watches files sees it
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _renameat2() -> Any:
    """Return the system's call, or None."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # here: the help of the command line does without it

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library of before 2018
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call
