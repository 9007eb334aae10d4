"""A full disk: found before it is full where possible, recognised where not, and named as the reason."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

FULL = "The disk of the service is full. Make room on it, or delete tables, jobs or models; then try again."
EXIT_FULL = 75  # the exit code of a process that could not even write this down
_ERRORS = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it was made of, says that there is no room on the disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _ERRORS:
            return True
        error = error.__cause__ or error.__context__
    return False


def check_room(folder: Path, reserve: int) -> None:
    """Refuse what needs room while less than the reserve is free."""
    if shutil.disk_usage(folder).free < reserve:
        raise OSError(errno.ENOSPC, FULL)
