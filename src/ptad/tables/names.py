"""Column names that were probably meant: another case, blanks, or about one letter away."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

CLOSE = 0.8  # of 1: about one letter in a name of five or more
MOST = 3  # names in one message


def closest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the one of ``names`` that ``name`` was probably meant to be, or None."""
    plain = {_plain(known): known for known in reversed(names)}
    if _plain(name) in plain:
        return plain[_plain(name)]
    found = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=CLOSE)
    return plain[found[0]] if found else None


def did_you_mean(absent: Sequence[str], names: Sequence[str]) -> str:
    """Return a question that follows a sentence about names that are not there; nothing if no name is close."""
    free = [name for name in names if name not in absent]
    found = {name: close for name in absent[:MOST] if (close := closest_name(name, free)) is not None}
    if not found:
        return ""
    if len(absent) == 1:
        return f" Did you mean {found[absent[0]]!r}?"
    return f" Did you mean {', '.join(f'{close!r} for {name!r}' for name, close in found.items())}?"


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if not c.isspace() and c not in "_-.")
