"""What a person is told: what is wrong, where, and what to do, with the options named as that person knows them.

The library knows neither a terminal nor a request. It names an option by its Python name; whoever shows the message
spells it: ``types={'day': 'date'}`` in Python, ``--type day=date`` on the command line, ``'types'`` in a request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

Value = str | float | tuple[str, str]
_LISTS = ("drop", "missing", "normal", "only")  # parameters that take several values


@dataclass(frozen=True)
class Option:
    """A parameter, perhaps with a value that would help."""

    name: str  # as Python has it: false_alarm_rate, types
    value: Value | None = None  # a tuple is one entry of a mapping: a column and its type, a setting and its value


Spelling = Callable[[Option], str | None]
"""How a reader writes an option; None for one that this reader does not have."""


def in_python(option: Option) -> str:
    """Return an option as an argument of Python."""
    if option.value is None:
        return f"{option.name}="
    if isinstance(option.value, tuple):
        key, value = option.value
        return f"{option.name}={{{key!r}: {value!r}}}"
    if option.name in _LISTS:
        return f"{option.name}=[{option.value!r}]"
    return f"{option.name}={option.value!r}"


@dataclass(frozen=True)
class Message:
    """What is wrong or worth knowing, and what to do about it: whole sentences."""

    problem: str  # what was found and where
    remedy: str = ""  # what to do, with ``{}`` for every option
    options: tuple[Option, ...] = ()  # what the remedy names
    otherwise: str = ""  # the remedy for readers who do not have all of these options

    def phrase(self, spelling: Spelling = in_python) -> str:
        """Return the text for a reader."""
        return " ".join(filter(None, (self.problem, self.advice(spelling))))

    def advice(self, spelling: Spelling = in_python) -> str:
        """Return the remedy alone for a reader."""
        spelled = [text for text in map(spelling, self.options) if text is not None]
        return self.remedy.format(*spelled) if len(spelled) == len(self.options) else self.otherwise

    def __str__(self) -> str:
        return self.phrase()

    def to_json(self) -> list[Any]:
        """Return plain JSON types, to be sent to another process."""
        return [self.problem, self.remedy, [[o.name, o.value] for o in self.options], self.otherwise]

    @classmethod
    def from_json(cls, content: list[Any]) -> Self:
        """Read back what :meth:`to_json` wrote."""
        problem, remedy, named, otherwise = content
        options = tuple(Option(name, tuple(value) if isinstance(value, list) else value) for name, value in named)
        return cls(problem, remedy, options, otherwise)
