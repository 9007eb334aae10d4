"""Settings as data: every number is declared once, with its range, and checked in one place.

A group of settings is a frozen dataclass whose fields are made by :func:`setting`::

    @dataclass(frozen=True)
    class RidgeSettings(Settings):
        ridge: float = setting(0.3, low=0.0)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from ptad.errors import SettingError


def setting(
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    optional: bool = False,
    open_low: bool = False,
) -> Any:
    """Declare a field: its default and what it may be. The type is that of the default.

    Parameters
    ----------
    default : int, float, bool, str, tuple or None
        The value unless told otherwise.
    low, high : float, optional
        Smallest and largest value of a number, or of every item of a tuple.
    choices : sequence of str, optional
        The words that a text may be.
    optional : bool
        Whether None is allowed.
    open_low : bool
        Whether ``low`` itself is excluded.
    """
    limits = {"low": low, "high": high, "choices": choices, "optional": optional, "open_low": open_low}
    return field(default=default, metadata=limits)


@dataclass(frozen=True)
class Settings:
    """A group of settings; checked when it is made."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _plain(getattr(self, item.name))
            object.__setattr__(self, item.name, _checked(type(self).title(), item, value))

    @classmethod
    def title(cls) -> str:
        """The name under which the group appears in messages and dotted keys."""
        return str(getattr(cls, "name", cls.__name__))

    def replace(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed; an unknown one is named together with the known ones."""
        known = [item.name for item in fields(self)]
        for key in changes:
            if key not in known:
                raise SettingError(f"There is no setting '{self.title()}.{key}'. Known settings: {', '.join(known)}.")
        return dataclasses.replace(self, **dict(changes))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}


def _plain(value: Any) -> Any:
    """Return numbers of numpy, as a parameter grid has them, as Python's, and lists as tuples."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _checked(title: str, item: dataclasses.Field[Any], value: Any) -> Any:
    limits, default = item.metadata, item.default
    name = f"{title}.{item.name}"
    if value is None and limits["optional"]:
        return value
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            raise SettingError(f"The setting '{name}' must be one of {', '.join(limits['choices'])}. Got {value!r}.")
        return value
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or not value:
            raise SettingError(f"The setting '{name}' must be a list of at least one number. Got {value!r}.")
        return tuple(_number(name, type(default[0]), limits, item) for item in value)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingError(f"The setting '{name}' must be true or false. Got {value!r}.")
        return value
    kind = float if default is None else type(default)
    if default is None and isinstance(value, int):
        kind = int
    return _number(name, kind, limits, value)


def _number(name: str, kind: type, limits: Mapping[str, Any], value: Any) -> Any:
    whole = kind is int
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool) and math.isfinite(value)
    low, high = limits["low"], limits["high"]
    if fits and low is not None:
        fits = value > low if limits["open_low"] else value >= low
    if fits and high is not None:
        fits = value <= high
    if not fits:
        what = "a whole number" if whole else "a number"
        bounds = [f"{'above' if limits['open_low'] else 'at least'} {_shown(low)}"] if low is not None else []
        bounds += [f"at most {_shown(high)}"] if high is not None else []
        rule = " and ".join(bounds)
        raise SettingError(f"The setting '{name}' must be {what}{', ' + rule if rule else ''}. Got {value!r}.")
    return value if whole else float(value)


def _shown(limit: float) -> str:
    return f"{limit:,.0f}" if abs(limit) >= 1000 else f"{limit:g}"
