"""Everything that ptad raises on purpose.

::

    PtadError
    ├── UserError (ValueError)      the caller can mend it: a wrong value, file or table
    │   ├── DataError               the table itself: columns, types, values, too few rows
    │   ├── SettingError            a parameter, an option or a configuration file
    │   ├── BundleError             a model folder that is damaged, foreign or too new
    │   └── MissingExtraError       an optional package is not installed (also an ImportError)
    └── TrainingError (RuntimeError) the data are fine, yet training came to nothing

Every message names the culprit and the remedy. The command line maps ``UserError`` to exit code 2, everything else
to 1; the service maps it to HTTP 400.
"""


class PtadError(Exception):
    """Base of all errors raised by ptad."""


class UserError(PtadError, ValueError):
    """Something that the caller can mend."""


class DataError(UserError):
    """The table cannot be used as it is."""


class SettingError(UserError):
    """A parameter, option or configuration file is wrong."""


class BundleError(UserError):
    """A model folder cannot be read."""


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
        super().__init__(f"{purpose} needs the package '{package}'. Install it with: pip install 'ptad[{extra}]'")


class TrainingError(PtadError, RuntimeError):
    """Training ended without a usable model."""
