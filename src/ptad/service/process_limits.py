"""Limits of the operating system for processes: memory, time, open files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

RESERVED_FILES = 64  # descriptors for files, workers and the sandbox
MOST_FILES = 4096  # descriptors that the service asks for
_NO_LIMIT = 2**31


def limit_process(**limits: int) -> None:
    """Limit this process, such as ``AS=2**30`` for ``RLIMIT_AS``; it also writes no core dumps."""
    if resource is not None:
        for name, most in {"CORE": 0, **limits}.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def available_connections() -> int:
    """Raise the number of files that this process may open, and return how many connections that allows."""
    if resource is None:
        return _NO_LIMIT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _NO_LIMIT
    target = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < target:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return max(soft - RESERVED_FILES, soft // 2, 1)


def worker_memory(limit: int, n_workers: int) -> int:
    """Return the bytes that a worker may use: the limit, or for 0 its share of four fifths of the machine's memory."""
    if limit:
        return limit
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 0
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):
            total = min(total, int(Path(path).read_text()))
    return max(total * 4 // 5 // n_workers, 2**30)
