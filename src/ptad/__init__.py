"""One-class anomaly detection for tables: PTAD, as an estimator that people can trust."""

from ptad._version import __version__
from ptad.config import Config
from ptad.errors import BundleError, DataError, MissingExtraError, PtadError, SettingError, TrainingError, UserError
from ptad.estimator import PTAD
from ptad.scoring import Explanation

__all__ = [
    "PTAD",
    "Config",
    "Explanation",
    "PtadError",
    "UserError",
    "DataError",
    "SettingError",
    "BundleError",
    "MissingExtraError",
    "TrainingError",
    "__version__",
]
