"""The exceptions of ptad and their messages.

::

    PtadError
    ├── UserError (ValueError)      the caller can correct it: a wrong value, file or table
    │   ├── DataError               the table itself: columns, types, values, too few rows
    │   ├── SettingError            a parameter, an option or a configuration file
    │   ├── BundleError             a model folder that is damaged, foreign or too new
    │   ├── BusyError               another process is writing the same output
    │   └── MissingExtraError       an optional package is not installed (also an ImportError)
    └── TrainingError (RuntimeError) training failed on valid data

Every message says what is wrong, where, and what to do. It holds options by their Python names; the interface that
shows it spells them for its reader: an argument in Python, an option on the command line, a member of a request. The
command line maps ``UserError`` to exit code 2, everything else to 1; the service maps it to HTTP 400.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self

Value = str | float | tuple[str, str]
_LISTS = ("drop", "missing", "normal", "only")  # parameters that take several values


@dataclass(frozen=True)
class Option:
    """A parameter that a remedy names, perhaps with a value."""

    name: str  # in Python: false_alarm_rate, types
    value: Value | None = None  # a tuple is one entry of a mapping: a column and its type, a setting and its value


Spelling = Callable[[Option], str | None]
"""How an interface writes an option; None for one that it does not have."""


def in_python(option: Option) -> str:
    """Return an option as a keyword argument of Python."""
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
    """What is wrong or worth knowing, and what to do about it, in whole sentences."""

    problem: str  # what is wrong and where
    remedy: str = ""  # what to do; options are in braces: "Name one with {label}."
    otherwise: str = ""  # the remedy for interfaces that do not have all of these options
    options: tuple[Option, ...] = ()  # those of the remedy that have a value

    def phrase(self, spelling: Spelling = in_python) -> str:
        """Return the whole text, with options as an interface spells them."""
        return " ".join(filter(None, (self.problem, self.advice(spelling))))

    def advice(self, spelling: Spelling = in_python) -> str:
        """Return the remedy alone."""
        options = {option.name: option for option in self.options}
        names = [name for _, name, _, _ in Formatter().parse(self.remedy) if name]
        spelled = {name: spelling(options.get(name, Option(name))) for name in names}
        return self.otherwise if None in spelled.values() else self.remedy.format(**spelled)

    def __str__(self) -> str:
        return self.phrase()

    def to_json(self) -> list[Any]:
        """Return plain JSON types, to send to another process."""
        return [self.problem, self.remedy, self.otherwise, [[o.name, o.value] for o in self.options]]

    @classmethod
    def from_json(cls, content: list[Any]) -> Self:
        """Read back what :meth:`to_json` returned."""
        problem, remedy, otherwise, options = content
        restored = (Option(name, tuple(value) if isinstance(value, list) else value) for name, value in options)
        return cls(problem, remedy, otherwise, tuple(restored))


class PtadError(Exception):
    """Base of all errors raised by ptad.

    Parameters
    ----------
    problem : str
        What is wrong and where.
    remedy : str
        What to do, if the problem does not say so itself; options are in braces: "Name one with {label}."
    otherwise : str
        The remedy for interfaces that do not have all of these options.
    options : tuple of Option
        Those of the remedy that have a value.
    """

    def __init__(self, problem: str, remedy: str = "", otherwise: str = "", options: tuple[Option, ...] = ()) -> None:
        super().__init__(problem, remedy, otherwise, options)
        self.message = Message(problem, remedy, otherwise, options)

    def __str__(self) -> str:
        return str(self.message)


class UserError(PtadError, ValueError):
    """Something that the caller can correct."""


class DataError(UserError):
    """The table cannot be used as it is."""


class SettingError(UserError):
    """A parameter, option or configuration file is wrong."""


class BundleError(UserError):
    """A model folder cannot be read."""


class BusyError(UserError):
    """Another process is writing the same output."""


class MissingExtraError(UserError, ImportError):
    """An optional package is needed.

    Parameters
    ----------
    package : str
        The package that is not installed.
    extra : str
        The extra of ptad that installs it.
    purpose : str
        What needs it.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}'.", f"Install it with: pip install 'ptad[{extra}]'")
        self.args = (package, extra, purpose)


@contextmanager
def needs_extra(extra: str, purpose: str, package: str | None = None) -> Iterator[None]:
    """Turn a failed import into the error that says which package and extra are needed, and for what."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package or str(error.name), extra, purpose) from error


class TrainingError(PtadError, RuntimeError):
    """Training ended without a usable model, although the data are valid."""
