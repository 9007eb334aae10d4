"""Errors for the log: where they came from, never what they say, which may quote the data."""

from __future__ import annotations

import traceback


def traced(error: BaseException) -> str:
    """Return the kind of an error and the way it came, the innermost place first."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " < ".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in reversed(frames)
    )
    return f"{type(error).__name__} in {where}"
