"""Log lines without data: where an error came from, never what it says; and few of those a client can cause at will."""

from __future__ import annotations

import logging
import time
import traceback

SECONDS = 10.0  # between two lines of the same text


class SparseLog(logging.Filter):
    """Lets a line through that was not logged for a while; the next one says how many were not.

    Lines are told apart by their text before arguments are filled in. Tracebacks quote values: records that carry one
    do not appear: what is unexpected is logged by :func:`traced`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is logged."""
        if record.exc_info:
            return False
        if record.levelno < logging.WARNING:
            return True
        key, now = str(record.msg)[:200], time.monotonic()
        moment, left_out = self._last.get(key, (-SECONDS, 0))
        if now - moment < SECONDS:
            self._last[key] = (moment, left_out + 1)
            return False
        if len(self._last) > 1000:
            self._last.clear()
        self._last[key] = (now, 0)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out:,} more times since the last line)"
            record.args = ()
        return True


def traced(error: BaseException) -> str:
    """Return the kind of an error and the way it came, the innermost place first."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " < ".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in reversed(frames)
    )
    return f"{type(error).__name__} in {where}"
