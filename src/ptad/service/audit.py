"""Audit lines: who did what, and when; identifiers that the service made, never data.

Changes, uploads, scored files and downloads have a line each. Single rows that are scored or explained are only counted
(see ``/metrics``), and refused requests have a line now and then, so that nobody can flood the log.
"""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import Any

from ptad.service.logs import SparseLog

logger = logging.getLogger("ptad.service.audit")
logger.addFilter(SparseLog())

DOWNLOADS = ("/download", "/scores", "/report.html", "/bad-cells")
_made: ContextVar[dict[str, str] | None] = ContextVar("made", default=None)


def begin() -> dict[str, str]:
    """Begin a request; what it makes is noted in the result."""
    made: dict[str, str] = {}
    _made.set(made)
    return made


def note(**identifiers: str) -> None:
    """Note what the request under way has made."""
    if (made := _made.get()) is not None:
        made.update(identifiers)


def write(scope: dict[str, Any], status: int, made: dict[str, str], *, token: bool, rows_only: bool) -> None:
    """Log the end of a request, if it was an action or was refused."""
    if rows_only and status < 400:
        return
    route = getattr(scope.get("route"), "path", None)
    client = scope.get("client")
    who = f"{client[0] if client else 'unknown'}{' (token)' if token and status != 401 else ''}"
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if status in (401, 403):
        logger.warning("audit: a request was refused, the last one: %s %s %d", when, who, status)
        return
    if route is None or (scope["method"] in ("GET", "HEAD", "OPTIONS") and not route.endswith(DOWNLOADS)):
        return
    named = dict(scope.get("path_params") or {}) | made if status < 400 else made
    what = " ".join(f"{name}={value}" for name, value in named.items())
    logger.info("audit: %s %s %s %s %s%d", when, who, scope["method"], route, f"{what} " if what else "", status)
