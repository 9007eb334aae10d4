"""Files shared between processes: replaced atomically, opened only if regular, written by one process at a time.

A reader finds the old file or the new one. A writer that is killed leaves neither a partial result nor a lock: locks
are those of the operating system, which end with the process.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from ptad.errors import BusyError, UserError

try:
    import fcntl
except ImportError:  # Windows: no such locks there; two writers are the user's care
    fcntl = None  # type: ignore[assignment]

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # some network drives have none


class NotRegularFileError(OSError):
    """A path is a link, a pipe, a device or a folder where a file should be."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; raise :class:`NotRegularFileError` for anything else.

    Links are not followed, and pipes and devices, some of which never end, are not waited for.
    """
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))  # noqa: SIM115
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotRegularFileError(error.errno, "it is not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegularFileError(errno.EINVAL, "it is not a regular file")
    return file


def output_file(path: str | os.PathLike[str], kind: type[UserError]) -> Path:
    """Return the file that an output replaces, of a link its target; raise an error of this kind for anything else."""
    given, target = Path(path), Path(os.path.realpath(path))  # Path.resolve raises for a link to itself
    if target.is_dir():
        raise kind(f"{given} is a folder. Name a file to write to.")
    # the file behind /dev/stdout belongs to whoever opened it; what an output replaces is no longer a pipe or a device
    if given.parent in (Path("/dev"), Path("/dev/fd")) or (target.exists() and not target.is_file()):
        raise kind(f"{given} is a pipe or a device. Name a file to write to.")
    return target if given.is_symlink() else given


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


class NewFile:
    """A file that is written as ``temporary`` and renamed atomically once its bytes are on the disk.

    Killed at any moment, the old file or the new one is there; an exception in the ``with`` block keeps the old one.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")

    def finish(self) -> None:
        """Flush the file to the disk and rename it."""
        with self.temporary.open("r+b") as file:
            os.fsync(file.fileno())
        self.temporary.replace(self.path)
        sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove the temporary file."""
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


def write_atomic(path: Path, content: bytes) -> None:
    """Write or replace a file atomically."""
    with NewFile(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write or replace a JSON file atomically."""
    write_atomic(path, json.dumps(content, allow_nan=False).encode())


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or None if it is absent or cannot be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def sync_folder(folder: Path) -> None:
    """Flush renames in a folder to the disk; where folders cannot be opened (Windows), renames are durable anyway."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full; Arrow passes errors of the system on as text."""
    return getattr(error, "errno", None) in _NO_SPACE or any(os.strerror(n) in str(error) for n in _NO_SPACE)


def write_error(path: str | os.PathLike[str], error: BaseException, kind: type[UserError]) -> UserError:
    """Return the user error, of the class ``kind``, for an output that cannot be written."""
    name = "standard output" if str(path) == "-" else str(path)
    reason = getattr(error, "strerror", None) or str(error)
    remedy = "Check the folder, its permissions and the free space"
    folder = Path(getattr(error, "filename", None) or ".").parent
    if is_full(error):
        reason = "no space left on the device"
        remedy = "Free some space or name another place; what was there before is unchanged"
    elif isinstance(error, FileNotFoundError) and not folder.exists():
        reason, remedy = f"there is no folder {folder}", "Make it, or name another place"
    elif not isinstance(error, OSError):  # Arrow: the values do not suit the format
        reason, remedy = reason[:300], "Choose another format, such as Parquet"
    return kind(f"{name} cannot be written: {reason}. {remedy}.")


@contextmanager
def write_errors(path: str | os.PathLike[str], kind: type[UserError]) -> Iterator[None]:
    """Turn errors of the system into :func:`write_error`."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error, kind) from error


def lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file or folder for this process.

    Returns whether the lock was taken; None where the system or the drive has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return None if error.errno in _NO_LOCKS else False
    return True


class OutputLock:
    """The lock of an output: one writer at a time, a second one is refused at once.

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
            if self._is_current(handle):
                self._handle = handle
            else:  # the previous writer has just removed it: lock the file that has the name now
                os.close(handle)
        with suppress(OSError):  # on a full disk the number of the process is missing, the lock is not
            os.ftruncate(self._handle, 0)
            os.write(self._handle, str(os.getpid()).encode())
        for part in hidden_siblings(out, r"[0-9a-f]{8}\.part"):  # of a writer that was killed
            part.unlink(missing_ok=True)

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self._handle is None:
            return
        with suppress(OSError):
            if self._is_current(self._handle):
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

    def _is_current(self, handle: int) -> bool:
        """Whether the open file is still the one at the path of the lock."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.lstat())
        except FileNotFoundError:
            return False


def hidden_siblings(path: Path, suffix: str) -> list[Path]:
    """Return the files and folders beside a path named ``.NAME.SUFFIX``; ``suffix`` is a regular expression."""
    pattern = re.compile(re.escape(f".{path.name}.") + suffix)
    with suppress(OSError), os.scandir(path.parent) as entries:
        return [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    return []
