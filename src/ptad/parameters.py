"""The parameters of :class:`ptad.PTAD`: what they may be, and which of them a model keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ptad.config import PRESETS, Config, make_config
from ptad.errors import SettingError
from ptad.tables.inference import check_types
from ptad.tables.number_format import check_signs

READING = ("types", "missing", "drop", "only", "decimal", "thousands")  # how a table becomes a matrix
# Where it runs and what it says is for the next machine to choose; settings are saved as a whole.
SAVED = ("preset", "false_alarm_rate", *READING, "random_state")


def check_parameters(estimator: Any) -> Config:
    """Return all settings in force; raise if a parameter or a setting is out of its range."""
    for name in ("types", "config"):
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, Mapping | Config):
            raise SettingError(f"The '{name}' parameter of PTAD must be a mapping. Got {value!r} instead.")
    check_signs(estimator.decimal, estimator.thousands)
    check_types(estimator.types if isinstance(estimator.types, Mapping) else {})
    if not isinstance(estimator.preset, str):
        raise SettingError(f"There is no preset {estimator.preset!r}. Choose one of: {', '.join(PRESETS)}.")
    if not isinstance(estimator.strict, bool | np.bool_):
        raise SettingError(f"The 'strict' parameter of PTAD must be true or false. Got {estimator.strict!r} instead.")
    if not isinstance(estimator.verbose, int) or estimator.verbose < 0:
        raise SettingError(f"The 'verbose' parameter of PTAD must be 0, 1 or more. Got {estimator.verbose!r} instead.")
    try:
        check_random_state(estimator.random_state)
    except ValueError as error:
        raise SettingError(
            "The 'random_state' parameter of PTAD must be None, a RandomState or a number from 0 to 2**32 - 1. "
            f"Got {estimator.random_state!r} instead."
        ) from error
    if not isinstance(estimator.device, str):
        raise SettingError(f"The 'device' parameter of PTAD must be text. Got {estimator.device!r} instead.")
    rate = estimator.false_alarm_rate
    if rate != "auto" and not (isinstance(rate, int | float | np.number) and 0.0 < float(rate) < 1.0):
        raise SettingError(
            "The 'false_alarm_rate' parameter of PTAD must be 'auto' or a float in the range (0.0, 1.0). "
            f"Got {rate!r} instead."
        )
    return make_config(estimator.preset, estimator.config)
