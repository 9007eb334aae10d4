"""Column scalings of the benchmark, fitted on training rows only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptad.benchmark.encoding import fill_gaps
from ptad.errors import SettingError

#: The scalings that a method without one of its own is run under, and the mark of one that has its own.
SCALINGS = ("standard", "minmax")
OWN = "own"

Matrix = npt.NDArray[np.float32]


def scale_columns(train: Matrix, test: Matrix, scaling: str) -> tuple[Matrix, Matrix]:
    """Scale both matrices by what the training rows say; missing cells get their median.

    Parameters
    ----------
    train, test : ndarray of shape (n, n_features)
        Unscaled rows; left as they are.
    scaling : {"standard", "minmax", "own"}
        Zero mean and unit deviation; [0, 1] on the training rows; or nothing. A constant column is only shifted.
    """
    train, test = fill_gaps(train, test)
    if scaling == OWN:
        return train, test
    rows = train.astype(np.float64)
    if scaling == "standard":
        shift, width = rows.mean(axis=0), rows.std(axis=0)
    elif scaling == "minmax":
        shift = rows.min(axis=0)
        width = rows.max(axis=0) - shift
    else:
        raise SettingError(f"There is no scaling {scaling!r}. Choose from: {', '.join((*SCALINGS, OWN))}.")
    # Rounding leaves a constant column a deviation of about 1e-16 of its size; dividing by that would blow it up.
    width = np.where(width > 1e-12 * np.maximum(1.0, np.abs(shift)), width, 1.0)
    scaled_test = ((test - shift) / width).astype(np.float32)
    return ((rows - shift) / width).astype(np.float32), scaled_test
