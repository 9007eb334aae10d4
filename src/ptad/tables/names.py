"""Names of columns in messages: missing ones, similar ones, lists of many."""

from __future__ import annotations

import difflib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MIN_SIMILARITY = 0.8  # about one letter in a name of five
MAX_QUESTIONS = 3  # names in one message
MAX_LISTED = 30  # columns of a table in one message
MAX_LENGTH = 100  # letters; longer names are not compared
MAX_COMPARED = 10  # names that are compared letter by letter: those with the most letters in common


def closest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the most similar one of ``names``: in another case, with other blanks, about one letter away; or None."""
    if len(name) > MAX_LENGTH:
        return None
    normal = _normalized(name)
    originals = {_normalized(other): other for other in reversed(names) if len(other) <= MAX_LENGTH}
    if normal in originals:
        return originals[normal]
    matches = difflib.get_close_matches(normal, _candidates(normal, originals), n=1, cutoff=MIN_SIMILARITY)
    if not matches and len(normal) >= 3:  # short names: several may be one letter away, such as s1 and s2
        alike = (other for other in originals if len(other) == len(normal))
        matches = [other for other in alike if sum(a != b for a, b in zip(normal, other, strict=True)) == 1]
    return originals[matches[0]] if len(matches) == 1 else None


def _candidates(name: str, names: Iterable[str]) -> list[str]:
    """The few names that are compared letter by letter, which takes the square of their length."""
    matcher, similarities = difflib.SequenceMatcher(b=name), []
    for other in names:
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= MIN_SIMILARITY and (similarity := matcher.quick_ratio()) >= MIN_SIMILARITY:
            similarities.append((similarity, other))
    return [other for _, other in heapq.nlargest(MAX_COMPARED, similarities)]


def did_you_mean(missing: Sequence[str], names: Sequence[str]) -> str:
    """Return a question to append to a message about missing names; nothing if no name is similar."""
    absent = set(missing)
    others = [name for name in names if name not in absent]
    similar = {name: close for name in missing[:MAX_QUESTIONS] if (close := closest_name(name, others)) is not None}
    if not similar:
        return ""
    if len(missing) == 1:
        return f" Did you mean {similar[missing[0]]!r}?"
    return f" Did you mean {', '.join(f'{close!r} for {name!r}' for name, close in similar.items())}?"


def listed(items: Sequence[Any], most: int = 10, show: Callable[[Any], str] = repr) -> str:
    """Return the first items, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(show, items[:most])) + more


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def no_column(
    table: str,
    missing: Sequence[str],
    names: Sequence[str],
    what: str = "column",
    why: str = "",
    candidates: Sequence[str] | None = None,
) -> str:
    """Return the message about missing columns: which, why they are needed, similar ones, and those of the table.

    ``candidates`` are the columns among ``names`` that may be a missing one misspelt, if not all.
    """
    question = did_you_mean(missing, names if candidates is None else candidates)
    return (
        f"{table} has no {what}{'s' if len(missing) > 1 else ''} {listed(missing, MAX_LISTED)}{why}.{question} "
        f"Its columns are: {listed(names, MAX_LISTED)}."
    )


def _normalized(name: str) -> str:
    return "".join(c for c in name.casefold() if not c.isspace() and c not in "_-.")
