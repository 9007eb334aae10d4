"""Texts for errors: what callers read in answers and jobs, and what the log may say without quoting data."""

from __future__ import annotations

import json
import traceback
from typing import Any

from ptad.errors import MissingExtraError, Option, PtadError
from ptad.files import is_full

DISK_FULL = "The disk of the service is full. Make room on it, or delete tables, jobs or models; then try again."
# parameters of the library that a request has as a field of its body or as a query parameter
REQUEST_FIELDS = (
    *("label", "normal", "missing", "false_alarm_rate", "types", "drop", "decimal", "thousands", "strict"),
    *("preset", "config", "sheet", "top"),
)
_LIST_FIELDS = ("normal", "missing", "drop")


def spell_for_http(option: Option) -> str | None:
    """Return the JSON field of a request that stands for an option; None if requests have none."""
    if option.name not in REQUEST_FIELDS:
        return None
    if option.value is None:
        return f"'{option.name}'"
    value = dict([option.value]) if isinstance(option.value, tuple) else option.value
    return f'"{option.name}": {json.dumps([value] if option.name in _LIST_FIELDS else value, ensure_ascii=False)}'


def summary_for_http(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary of the library without the path of the model, its notes phrased for HTTP."""
    from ptad.tables.notes import Note

    notes = [Note.from_json(note).message.phrase(spell_for_http) for note in summary["notes"]]
    return {name: value for name, value in summary.items() if name != "model"} | {"notes": notes}


def user_message(error: BaseException) -> str | None:
    """Return the text of an error that the caller or the operator can correct; None for any other."""
    if is_disk_full(error):
        return DISK_FULL
    if isinstance(error, MissingExtraError):  # the caller cannot install it
        return f"{error.message.problem} It is not installed on the service: ask its operator for it."
    return error.message.phrase(spell_for_http) if isinstance(error, PtadError) else None


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that there is no space left on the disk."""
    while error is not None:
        if isinstance(error, OSError) and is_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def short_traceback(error: BaseException) -> str:
    """Return the class of an error and its call stack, innermost first; without its text, which may be data."""
    frames = reversed(traceback.extract_tb(error.__traceback__)[-8:])
    places = (f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in frames)
    return f"{type(error).__name__} in {' < '.join(places)}"
