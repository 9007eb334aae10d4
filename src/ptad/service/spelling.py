"""How requests write the options that a message names."""

from __future__ import annotations

import json
from typing import Any

from ptad.messages import Option

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
