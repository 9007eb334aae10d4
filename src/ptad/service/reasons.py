"""Why something failed, in words for its caller: one way from an error to what a request, an upload or a job says.

Also how requests write the options that a message names, and what a log may say of an error.
"""

from __future__ import annotations

import json
import traceback
from typing import Any

from ptad.errors import Option, PtadError
from ptad.files import is_full

FULL = "The disk of the service is full. Make room on it, or delete tables, jobs or models; then try again."
# parameters of the library that members of a request, or its query, stand for
MEMBERS = frozenset(
    ("label", "normal", "missing", "false_alarm_rate", "types", "drop", "decimal", "thousands", "strict")  # of a fit
) | {"preset", "config", "sheet", "top"}
_LISTS = frozenset(("normal", "missing", "drop"))


def over_http(option: Option) -> str | None:
    """Return the member of a request that does what an option does, as JSON; None where there is none."""
    if option.name not in MEMBERS:
        return None
    if option.value is None:
        return f"'{option.name}'"
    value = dict([option.value]) if isinstance(option.value, tuple) else option.value
    return f'"{option.name}": {json.dumps([value] if option.name in _LISTS else value, ensure_ascii=False)}'


def in_words_of_http(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the library says of a model, without a path, and its notes with options as requests have them."""
    from ptad.tables.notes import Note

    notes = [Note.from_json(note).message.phrase(over_http) for note in found["notes"]]
    return {name: value for name, value in found.items() if name != "model"} | {"notes": notes}


def reason_of(error: BaseException) -> str | None:
    """Return why something failed, if the caller or the owner of the disk can do something about it."""
    if disk_is_full(error):
        return FULL
    return error.message.phrase(over_http) if isinstance(error, PtadError) else None


def disk_is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it was made of, says that there is no room on the disk."""
    while error is not None:
        if isinstance(error, OSError) and is_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def traced(error: BaseException) -> str:
    """Return the kind of an error and the way it came, the innermost place first; never what it says, which is data."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " < ".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in reversed(frames)
    )
    return f"{type(error).__name__} in {where}"
