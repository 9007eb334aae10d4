"""Everything that ptad raises on purpose.

::

    PtadError
    ├── UserError (ValueError)      the caller can correct it: a wrong value, file or table
    │   ├── DataError               the table itself: columns, types, values, too few rows
    │   ├── SettingError            a parameter, an option or a configuration file
    │   ├── BundleError             a model folder that is damaged, foreign or too new
    │   ├── BusyError               another process is writing the same output
    │   └── MissingExtraError       an optional package is not installed (also an ImportError)
    └── TrainingError (RuntimeError) the data are fine, yet training came to nothing

Every message names the culprit and the remedy; who shows it spells the options of the remedy for the reader. The
command line maps ``UserError`` to exit code 2, everything else to 1; the service maps it to HTTP 400.
"""

from __future__ import annotations

from ptad.messages import Message, Option


class PtadError(Exception):
    """Base of all errors raised by ptad.

    Parameters
    ----------
    problem : str
        What is wrong and where.
    remedy : str
        What to do, if the problem does not say so itself; ``{}`` stands for every option.
    options : tuple of Option
        What the remedy names.
    otherwise : str
        The remedy for readers who do not have all of these options.
    """

    def __init__(self, problem: str, remedy: str = "", options: tuple[Option, ...] = (), otherwise: str = "") -> None:
        super().__init__(problem, remedy, options, otherwise)
        self.message = Message(problem, remedy, options, otherwise)

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


class TrainingError(PtadError, RuntimeError):
    """Training ended without a usable model."""
