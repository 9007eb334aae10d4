"""Formats numbers and values of a table for people."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

TEXT_LENGTH = 80
LARGEST, SMALLEST = 1e15, 1e-5  # beyond, numbers are in scientific notation


def number_text(value: float, digits: int = 6) -> str:
    """Return a number with at most this many significant digits: 50,930 and 0.0012, not 5.093e+04."""
    if value != value:
        return "missing"
    if math.isinf(value) or (value and not SMALLEST <= abs(value) < LARGEST):
        return f"{value:.{digits}g}"
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def integer_text(value: int) -> str:
    """Return a whole number: 50,930, but 2024, since four digits may be a year."""
    return f"{value:,}" if abs(value) >= 10_000 else str(value)


def count_text(n: int, noun: str) -> str:
    """Return a number with its noun: 1 row, 50,930 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def different_texts(values: Sequence[float]) -> list[str]:
    """Return ascending numbers with as few digits as make them different."""
    for n in range(4, 12):
        texts = [number_text(value, n) for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts


def value_text(value: Any, digits: int = 6, length: int = TEXT_LENGTH) -> str | None:
    """Return the text of a cell: short numbers, ISO dates, at most ``length`` characters; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return number_text(value, digits)
    if isinstance(value, int) and not isinstance(value, bool):
        return integer_text(value)
    text = _moment_text(value) if isinstance(value, dt.datetime | dt.time) else str(value)
    return text if len(text) <= length else text[: length - 1] + "…"


def _moment_text(moment: dt.datetime | dt.time) -> str:
    """Return midnight of a day as a date, and seconds only where they are not 0."""
    exact = "auto" if moment.second or moment.microsecond else "minutes"
    if isinstance(moment, dt.time):
        return moment.isoformat(exact)
    if moment.tzinfo is None and moment.time() == dt.time():
        return moment.date().isoformat()
    return moment.isoformat(" ", exact)
