"""Names of columns in messages: those that a table does not have, those that were probably meant, lists of many."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

CLOSE = 0.8  # of 1: about one letter in a name of five or more
MOST = 3  # names in one message
LISTED = 30  # columns of a table in one message
LONGEST = 100  # letters; a name with more is not compared
COMPARED = 10  # names that are compared letter by letter: those that have the most letters in common


def closest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the one of ``names`` that was probably meant: another case, blanks, about one letter away; or None."""
    if len(name) > LONGEST:
        return None
    wanted = _plain(name)
    plain = {_plain(known): known for known in reversed(names) if len(known) <= LONGEST}
    if wanted in plain:
        return plain[wanted]
    found = difflib.get_close_matches(wanted, _likely(wanted, plain), n=1, cutoff=CLOSE)
    if found:
        return plain[found[0]]
    near = [known for known in plain if _one_letter_away(wanted, known)]
    return plain[near[0]] if len(near) == 1 else None  # of short names several may be near, such as s1 and s2


def _likely(wanted: str, names: Iterable[str]) -> list[str]:
    """The few names that are worth a comparison: it takes the square of their length."""
    matcher, shares = difflib.SequenceMatcher(b=wanted), []
    for name in names:
        matcher.set_seq1(name)
        if matcher.real_quick_ratio() >= CLOSE and (share := matcher.quick_ratio()) >= CLOSE:
            shares.append((share, name))
    return [name for _, name in heapq.nlargest(COMPARED, shares)]


def did_you_mean(absent: Sequence[str], names: Sequence[str]) -> str:
    """Return a question that follows a sentence about names that are not there; nothing if no name is close."""
    gone = set(absent)
    free = [name for name in names if name not in gone]
    found = {name: close for name in absent[:MOST] if (close := closest_name(name, free)) is not None}
    if not found:
        return ""
    if len(absent) == 1:
        return f" Did you mean {found[absent[0]]!r}?"
    return f" Did you mean {', '.join(f'{close!r} for {name!r}' for name, close in found.items())}?"


def listed(items: Sequence[Any], most: int = 10, show: Callable[[Any], str] = repr) -> str:
    """Return the first names or values, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(show, items[:most])) + more


def no_column(
    where: str,
    absent: Sequence[str],
    names: Sequence[str],
    what: str = "column",
    why: str = "",
    likely: Sequence[str] | None = None,
) -> str:
    """Return what is said of a table without some columns: which, why they are wanted, and what it has instead.

    ``likely`` are those of its columns ``names`` that may have been meant, if not all.
    """
    gone, there = listed(absent, LISTED), listed(names, LISTED)
    question = did_you_mean(absent, names if likely is None else likely)
    return f"{where} has no {what}{'s' if len(absent) > 1 else ''} {gone}{why}.{question} Its columns are: {there}."


def _one_letter_away(name: str, known: str) -> bool:
    """Whether one letter is another one; both have at least three."""
    return len(name) == len(known) >= 3 and sum(a != b for a, b in zip(name, known, strict=True)) == 1


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if not c.isspace() and c not in "_-.")
