"""Log lines that a client can cause at will: one in a while, without tracebacks, and how many were not written."""

from __future__ import annotations

import logging
import time

SECONDS = 10.0  # between two lines of the same text


class SparseLog(logging.Filter):
    """Lets a line through that was not logged for a while; the next one says how many were not.

    Lines are told apart by their text before arguments are filled in. Tracebacks quote values: records that carry one
    do not appear, since what is unexpected is logged without it elsewhere (see :mod:`ptad.service.traces`).
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
