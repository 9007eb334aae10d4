"""Log lines without data, and few of those that a client can cause at will.

Changes, uploads, scored files and downloads have an audit line each: who did what, and when, with identifiers that the
service made. Single rows that are scored or explained are only counted (see ``/metrics``), and refused requests have a
line now and then, so that nobody can flood the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from typing import Any

SECONDS = 10.0  # between two lines of the same text
DOWNLOADS = ("/download", "/scores", "/report.html", "/bad-cells")


class SparseLog(logging.Filter):
    """Lets a line through that was not logged for a while; the next one says how many were not.

    Lines are told apart by their text before arguments are filled in. Tracebacks quote values: records that carry one
    do not appear: what is unexpected is logged by :func:`ptad.service.reasons.traced`.
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


audit_log = logging.getLogger("ptad.service.audit")
audit_log.addFilter(SparseLog())


def audit(scope: MutableMapping[str, Any], status: int, *, token: bool) -> None:
    """Log the end of a request, if it was an action or was refused; what it made is among its path parameters.

    Parameters
    ----------
    scope : mapping
        The request.
    status : int
        Of the answer; 0 if the client did not wait for one.
    token : bool
        Whether the request came with the token of the service.
    """
    route, client = getattr(scope.get("route"), "path", None), scope.get("client")
    who = f"{client[0] if client else 'unknown'}{' (token)' if token else ''}"
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if status in (401, 403):
        audit_log.warning("audit: a request was refused, the last one: %s %s %d", when, who, status)
        return
    reads = scope["method"] in ("GET", "HEAD", "OPTIONS")
    if route is None or status == 0 or (reads and not route.endswith(DOWNLOADS)):
        return
    if status >= 400:  # one line in a while for each address; a name that nothing has may be data
        audit_log.warning(
            f"audit: a request was refused, the last one: %s %s {scope['method']} {route} {status}", when, who
        )
        return
    what = "".join(f"{name}={value} " for name, value in (scope.get("path_params") or {}).items())
    audit_log.info("audit: %s %s %s %s %s%d", when, who, scope["method"], route, what, status)
