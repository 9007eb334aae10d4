"""What a bundle may hold, as data: every entry of its JSON and every array is declared once and checked in one place.

A folder that comes from elsewhere is not trusted: nothing is made from it, and no memory is taken for it, before it has
been found to be what the library itself would have written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptad.errors import BundleError

MOST_ROWS = 2**53  # more rows than any table has; counts up to here are exact as floating-point numbers
Dimension = int | tuple[int, int]  # so long, or at least and at most so long


class Entry(Protocol):
    """What a value of a JSON document may be."""

    def check(self, value: Any, place: str) -> None:
        """Raise :class:`BundleError`, naming the place, unless the value is what it may be."""
        ...


@dataclass(frozen=True)
class Anything:
    """A value that is checked elsewhere."""

    def check(self, value: Any, place: str) -> None:
        return


@dataclass(frozen=True)
class Whole:
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
    """A text, perhaps one of a few, perhaps a short one that can be printed as it is."""

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
class Truth:
    """True or false."""

    def check(self, value: Any, place: str) -> None:
        if not isinstance(value, bool):
            raise damaged(place, "true or false")


@dataclass(frozen=True)
class Null:
    """Nothing."""

    def check(self, value: Any, place: str) -> None:
        if value is not None:
            raise damaged(place, "null")


@dataclass(frozen=True)
class AnyOf:
    """One of several."""

    entries: tuple[Entry, ...]

    def check(self, value: Any, place: str) -> None:
        refusals = []
        for entry in self.entries:
            try:
                entry.check(value, place)
            except BundleError as error:
                refusals.append(error)
            else:
                return
        raise refusals[-1]


@dataclass(frozen=True)
class Listed:
    """A list of one kind of values."""

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
class Mapped:
    """A mapping from text to one kind of values."""

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
                raise BundleError(f"The model is damaged: {shown(place)} has no '{key}'. Restore it or fit again.")
            _check(entry, value[key], place, ".{}", key)
        for key, entry in self.optional.items():
            if key in value:
                _check(entry, value[key], place, ".{}", key)
        if unknown := value.keys() - self.entries.keys() - self.optional.keys():
            name = shown(min(unknown))
            raise BundleError(f"The model is damaged: {shown(place)} has an unknown entry '{name}'. Fit again.")


def _check(entry: Entry, value: Any, place: str, form: str, key: Any) -> None:
    """Check a value inside another one; its place is put into words only if it has to be named."""
    try:
        entry.check(value, place)
    except BundleError:
        entry.check(value, place + form.format(key))
        raise


@dataclass(frozen=True)
class ArrayLayout:
    """An array of a bundle: its type, its shape and the range of its values, which are finite in any case."""

    dtype: str  # the name that numpy gives to the type
    shape: tuple[Dimension, ...]
    low: float = -math.inf
    high: float = math.inf
    gaps: bool = False  # whether values may be missing, that is NaN

    def check_shape(self, name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        """Raise unless the array is declared with this type and shape; its values are not needed for that."""
        fits = len(shape) == len(self.shape) and all(
            (wanted[0] <= length <= wanted[1]) if isinstance(wanted, tuple) else length == wanted
            for length, wanted in zip(shape, self.shape, strict=True)
        )
        if dtype != np.dtype(self.dtype) or not fits:
            axes = ", ".join(f"{d[0]} to {d[1]}" if isinstance(d, tuple) else str(d) for d in self.shape)
            raise BundleError(
                f"The model is damaged: its array '{name}' is {dtype} of shape {shown(str(tuple(shape)))} where "
                f"{self.dtype} of shape ({axes}) belongs. Restore it or fit again."
            )

    def check_values(self, name: str, array: NDArray[Any]) -> None:
        """Raise if a value is not finite, or out of its range."""
        if self.gaps:
            array = array[~np.isnan(array)]
        if not array.size:
            return
        with np.errstate(invalid="ignore"):
            low, high = array.min(), array.max()  # NaN if one value is
        if not (self.low <= low and high <= self.high and np.isfinite(low) and np.isfinite(high)):
            raise BundleError(
                f"The model is damaged: its array '{name}' has values that are not finite or out of range. Restore it "
                "or fit again."
            )


def check_shapes(
    layouts: Mapping[str, ArrayLayout], declared: Mapping[str, tuple[np.dtype[Any], Sequence[int]]]
) -> None:
    """Raise unless exactly these arrays are declared, each with the right type and shape."""
    for name, layout in layouts.items():
        if name not in declared:
            raise BundleError(f"The model is damaged: it has no array '{name}'. Restore it or fit again.")
        layout.check_shape(name, *declared[name])
    if unknown := declared.keys() - layouts.keys():
        raise BundleError(f"The model is damaged: it has an unknown array '{shown(min(unknown))}'. Fit again.")


def check_arrays(layouts: Mapping[str, ArrayLayout], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise unless these are the arrays that the layouts ask for, values and all."""
    check_shapes(layouts, {name: (array.dtype, array.shape) for name, array in arrays.items()})
    for name, layout in layouts.items():
        layout.check_values(name, arrays[name])


def require(condition: Any, name: str, what: str) -> None:
    """Raise unless a condition holds that an array has to meet beside its layout."""
    if not condition:
        raise BundleError(f"The model is damaged: its array '{name}' {what}. Restore it or fit again.")


def damaged(place: str, wanted: str) -> BundleError:
    """Return the error for an entry that is not what it may be."""
    return BundleError(f"The model is damaged: {shown(place)} must be {wanted}. Restore it or fit again.")


def shown(place: str) -> str:
    """Return a place for a message: names come from the file and may be long, or hold what a terminal obeys."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in place)
    return text if len(text) <= 100 else f"{text[:100]}..."
