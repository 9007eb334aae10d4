"""One-class anomaly detection for tables: PTAD, as an estimator that people can trust."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptad._version import __version__
from ptad.errors import (
    BundleError,
    BusyError,
    DataError,
    MissingExtraError,
    PtadError,
    SettingError,
    TrainingError,
    UserError,
)

if TYPE_CHECKING:
    from ptad.config import Config
    from ptad.estimator import PTAD
    from ptad.explanation import Explanation
    from ptad.model import Model

__all__ = [
    "PTAD",
    "Model",
    "Config",
    "Explanation",
    "PtadError",
    "UserError",
    "DataError",
    "SettingError",
    "BundleError",
    "BusyError",
    "MissingExtraError",
    "TrainingError",
    "__version__",
]

# scikit-learn takes a while to import: the help of the command line and the errors do without it
_LATER = {"PTAD": "ptad.estimator", "Config": "ptad.config", "Explanation": "ptad.explanation", "Model": "ptad.model"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'ptad' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
