"""Settings as data: every number is declared once, with its range, and checked in one place.

A group of settings is a frozen dataclass whose fields are made by :func:`setting`::

    @dataclass(frozen=True)
    class RidgeSettings(Settings):
        ridge: float = setting(0.3, low=0.0, high=1e3)
"""

from __future__ import annotations

import dataclasses
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

    A number, or every item of a tuple, lies from ``low`` to ``high``, without ``low`` itself if ``open_low``; a text is
    one of the ``choices``. ``optional`` settings may be None.
    """
    if choices is None and not isinstance(default, bool) and (low is None or high is None):
        raise TypeError("a setting that is a number needs low and high")
    limits = {"low": low, "high": high, "choices": choices, "optional": optional, "open_low": open_low}
    return field(default=default, metadata=limits)


@dataclass(frozen=True)
class Settings:
    """A group of settings, checked in its constructor."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _python_value(getattr(self, item.name))
            object.__setattr__(self, item.name, _checked(type(self).title(), item, value))

    @classmethod
    def title(cls) -> str:
        """The name of the group in messages and dotted keys."""
        return str(getattr(cls, "name", cls.__name__))

    def replace(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed; raise for an unknown one."""
        known = [item.name for item in fields(self)]
        for key in changes:
            if key not in known:
                raise SettingError(f"There is no setting '{self.title()}.{key}'. Known settings: {', '.join(known)}.")
        return dataclasses.replace(self, **dict(changes))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}


def _python_value(value: Any) -> Any:
    """Convert numpy scalars, as a parameter grid has them, to Python numbers, and lists to tuples."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(_python_value(item) for item in value) if isinstance(value, list | tuple) else value


def _checked(title: str, item: dataclasses.Field[Any], value: Any) -> Any:
    limits, default = item.metadata, item.default
    name = f"{title}.{item.name}"
    if value is None and limits["optional"]:
        return value
    if limits["choices"] is not None:
        if value not in limits["choices"]:
            listed = ", ".join(limits["choices"])
            raise SettingError(f"The setting '{name}' must be one of {listed}. Got {_shown(value)}.")
        return value
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or not value:
            raise SettingError(f"The setting '{name}' must be a list of at least one number. Got {_shown(value)}.")
        return tuple(_number(name, type(default[0]), limits, item) for item in value)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingError(f"The setting '{name}' must be true or false. Got {_shown(value)}.")
        return value
    kind = float if default is None else type(default)
    if default is None and isinstance(value, int):
        kind = int
    return _number(name, kind, limits, value)


def _number(name: str, kind: type, limits: Mapping[str, Any], value: Any) -> Any:
    whole, low, high = kind is int, limits["low"], limits["high"]
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not is_number or not (low < value <= high if limits["open_low"] else low <= value <= high):
        what = "a whole number" if whole else "a number"
        least = f"{'above' if limits['open_low'] else 'at least'} {_format_bound(low)}"
        raise SettingError(
            f"The setting '{name}' must be {what}, {least} and at most {_format_bound(high)}. Got {_shown(value)}."
        )
    return value if whole else float(value)


def _format_bound(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"


def _shown(value: Any) -> str:
    """Return a value for a message, shortened if it is long."""
    if isinstance(value, int) and value.bit_length() > 200:  # Python refuses to format the longest ones
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
