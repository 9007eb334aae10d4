"""Log lines without data, and few of those that a client can cause at will.

Changes, uploads, scored files and downloads leave an audit line each: who did what, and when, with identifiers that the
service generated. Single rows that are scored or explained are only counted (see ``/metrics``). Refused requests leave
a line now and then, so that nobody can flood the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from typing import Any

SECONDS = 10.0  # between two lines of the same text
DOWNLOADS = ("/download", "/scores", "/report.html", "/bad-cells")


class SparseLog(logging.Filter):
    """Logs a warning at most once in ten seconds; the next one tells how many were not logged.

    Warnings are the same if their text is the same before arguments are filled in. Records with a traceback, which
    quotes values, are dropped: unexpected errors are logged by
    :func:`ptad.service.error_messages.short_traceback`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, tuple[float, int]] = {}  # of every text: time of its last line, lines suppressed since

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        if record.exc_info:
            return False
        if record.levelno < logging.WARNING:
            return True
        key, now = str(record.msg)[:200], time.monotonic()
        logged, n_suppressed = self._last.get(key, (-SECONDS, 0))
        if now - logged < SECONDS:
            self._last[key] = (logged, n_suppressed + 1)
            return False
        if len(self._last) > 1000:
            self._last.clear()
        self._last[key] = (now, 0)
        if n_suppressed:
            record.msg = f"{record.getMessage()} ({n_suppressed:,} more times since the last line)"
            record.args = ()
        return True


audit_log = logging.getLogger("ptad.service.audit")
audit_log.addFilter(SparseLog())


def audit(scope: MutableMapping[str, Any], method: str, status: int, *, token: bool) -> None:
    """Log a request that changed or downloaded something, or was refused; ``token``: whether it came with the token.

    Identifiers of what it created are among the path parameters of its ``scope``. ``method`` is "other" where the
    service does not know it, since it may be of any length; ``status`` is 0 if the client disconnected before.
    """
    route, client = getattr(scope.get("route"), "path", None), scope.get("client")
    who = f"{client[0] if client else 'unknown'}{' (token)' if token else ''}"
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    refused = "audit: a request was refused, the last one: %s %s"
    if status in (401, 403):
        audit_log.warning(f"{refused} %d", when, who, status)
        return
    is_read = method in ("GET", "HEAD", "OPTIONS")
    if route is None or status == 0 or (is_read and not route.endswith(DOWNLOADS)):
        return
    if status >= 400:  # without identifiers: one that does not exist may be data
        audit_log.warning(f"{refused} {method} {route} {status}", when, who)
        return
    identifiers = "".join(f"{name}={value} " for name, value in (scope.get("path_params") or {}).items())
    audit_log.info("audit: %s %s %s %s %s%d", when, who, method, route, identifiers, status)
