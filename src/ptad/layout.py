"""Layouts of bundles: every entry of their JSON and every array is declared once and checked in one place.

A folder that comes from elsewhere is not trusted: no object is made from it, and no memory allocated for it, before it
has been checked to be what the library itself would have written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptad.errors import BundleError

MOST_ROWS = 2**53  # more rows than any table has; counts up to here are exact as floating-point numbers
Dimension = int | tuple[int, int]  # a length, or the smallest and the largest one


class Entry(Protocol):
    """The declaration of a value of a JSON document."""

    def check(self, value: Any, place: str) -> None:
        """Raise :class:`BundleError`, naming the place, unless the value is as declared."""
        ...


@dataclass(frozen=True)
class Anything:
    """A value that is checked elsewhere."""

    def check(self, value: Any, place: str) -> None:
        return


@dataclass(frozen=True)
class Integer:
    """A whole number."""

    low: int
    high: int

    def check(self, value: Any, place: str) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise damaged(place, f"a whole number from {self.low} to {self.high}")


@dataclass(frozen=True)
class Number:
    """A finite number."""

    low: float = -math.inf
    high: float = math.inf

    def check(self, value: Any, place: str) -> None:
        if type(value) not in (int, float) or not (self.low <= value <= self.high and abs(value) < math.inf):
            raise damaged(place, f"a finite number from {self.low:g} to {self.high:g}")


@dataclass(frozen=True)
class Text:
    """A text; with ``choices`` one of them, with ``longest`` one of at most so many printable characters."""

    choices: Sequence[str] | None = None
    longest: int | None = None

    def check(self, value: Any, place: str) -> None:
        if not isinstance(value, str):
            raise damaged(place, "a text")
        if self.longest is not None and not (len(value) <= self.longest and value.isprintable()):
            raise damaged(place, f"a text of at most {self.longest} printable characters")
        if self.choices is not None and value not in self.choices:
            raise damaged(place, f"one of {', '.join(self.choices)}")


@dataclass(frozen=True)
class Boolean:
    """True or false."""

    def check(self, value: Any, place: str) -> None:
        if not isinstance(value, bool):
            raise damaged(place, "true or false")


@dataclass(frozen=True)
class Null:
    """The value null."""

    def check(self, value: Any, place: str) -> None:
        if value is not None:
            raise damaged(place, "null")


@dataclass(frozen=True)
class AnyOf:
    """A value that one of several declarations allows."""

    entries: tuple[Entry, ...]

    def check(self, value: Any, place: str) -> None:
        for entry in self.entries[:-1]:
            with suppress(BundleError):
                return entry.check(value, place)
        return self.entries[-1].check(value, place)


@dataclass(frozen=True)
class ListOf:
    """A list of values with the same declaration."""

    item: Entry
    low: int = 0
    high: int | None = None
    distinct: bool = False

    def check(self, value: Any, place: str) -> None:
        most = MOST_ROWS if self.high is None else self.high
        if not isinstance(value, list) or not self.low <= len(value) <= most:
            bounds = f" of at least {self.low}" if self.low else ""
            raise damaged(place, f"a list{bounds}" if self.high is None else f"a list of {self.low} to {self.high}")
        for i, item in enumerate(value):
            _check(self.item, item, place, "[{}]", i)
        if self.distinct and len(set(value)) < len(value):
            raise damaged(place, "a list without repetitions")


@dataclass(frozen=True)
class MappingOf:
    """A mapping from text to values with the same declaration."""

    item: Entry

    def check(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise damaged(place, "a mapping")
        for key, item in value.items():
            _check(self.item, item, place, ".{}", key)


@dataclass(frozen=True)
class Record:
    """A mapping with known keys; those in ``optional`` may be absent."""

    entries: Mapping[str, Entry]
    optional: Mapping[str, Entry] = field(default_factory=dict)

    def check(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise damaged(place, "a mapping")
        for key, entry in self.entries.items():
            if key not in value:
                raise BundleError(f"The model is damaged: {printable(place)} has no '{key}'. Restore it or fit again.")
            _check(entry, value[key], place, ".{}", key)
        for key, entry in self.optional.items():
            if key in value:
                _check(entry, value[key], place, ".{}", key)
        if unknown := value.keys() - self.entries.keys() - self.optional.keys():
            name = printable(min(unknown))
            raise BundleError(f"The model is damaged: {printable(place)} has an unknown entry '{name}'. Fit again.")


def _check(entry: Entry, value: Any, place: str, form: str, key: Any) -> None:
    """Check a value inside another one; its place is formatted only for an error, since most values are right."""
    try:
        entry.check(value, place)
    except BundleError:
        entry.check(value, place + form.format(key))
        raise


@dataclass(frozen=True)
class ArrayLayout:
    """An array of a bundle: its type, its shape and the range of its values, which are finite."""

    dtype: str  # the name that numpy gives to the type
    shape: tuple[Dimension, ...]
    low: float = -math.inf
    high: float = math.inf
    allow_nan: bool = False  # whether values may be NaN

    def check_shape(self, name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        """Raise unless an array has this type and shape."""
        fits = len(shape) == len(self.shape) and all(
            (d[0] <= length <= d[1]) if isinstance(d, tuple) else length == d
            for length, d in zip(shape, self.shape, strict=True)
        )
        if dtype != np.dtype(self.dtype) or not fits:
            axes = ", ".join(f"{d[0]} to {d[1]}" if isinstance(d, tuple) else str(d) for d in self.shape)
            raise BundleError(
                f"The model is damaged: its array '{name}' is {dtype} of shape {printable(str(tuple(shape)))} where "
                f"{self.dtype} of shape ({axes}) belongs. Restore it or fit again."
            )

    def check_values(self, name: str, array: NDArray[Any]) -> None:
        """Raise if a value is not finite, or out of its range."""
        if self.allow_nan:
            array = array[~np.isnan(array)]
        if not array.size:
            return
        with np.errstate(invalid="ignore"):
            low, high = array.min(), array.max()  # NaN if a value is NaN
        if not (self.low <= low and high <= self.high and np.isfinite(low) and np.isfinite(high)):
            raise BundleError(
                f"The model is damaged: its array '{name}' has values that are not finite or out of range. Restore it "
                "or fit again."
            )


def check_shapes(
    layouts: Mapping[str, ArrayLayout], declared: Mapping[str, tuple[np.dtype[Any], Sequence[int]]]
) -> None:
    """Raise unless the header of a file, ``declared``, has exactly these arrays with their types and shapes."""
    for name, layout in layouts.items():
        if name not in declared:
            raise BundleError(f"The model is damaged: it has no array '{name}'. Restore it or fit again.")
        layout.check_shape(name, *declared[name])
    if unknown := declared.keys() - layouts.keys():
        raise BundleError(f"The model is damaged: it has an unknown array '{printable(min(unknown))}'. Fit again.")


def check_arrays(layouts: Mapping[str, ArrayLayout], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise unless these are the arrays of the layouts, with their types, shapes and ranges of values."""
    check_shapes(layouts, {name: (array.dtype, array.shape) for name, array in arrays.items()})
    for name, layout in layouts.items():
        layout.check_values(name, arrays[name])


def require(condition: Any, name: str, what: str) -> None:
    """Raise unless a further condition on an array holds."""
    if not condition:
        raise BundleError(f"The model is damaged: its array '{name}' {what}. Restore it or fit again.")


def damaged(place: str, expected: str) -> BundleError:
    """Return the error for an entry that is not as declared."""
    return BundleError(f"The model is damaged: {printable(place)} must be {expected}. Restore it or fit again.")


def printable(text: str) -> str:
    """Return text of a file for a message: it may be long, or hold control sequences of a terminal."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= 100 else f"{text[:100]}..."
