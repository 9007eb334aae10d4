"""Rows as numbers only, for methods that know neither categories nor missing cells: one-hot, imputed, scaled.

Imputation and scaling are fitted on training rows only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptad.arrays import Matrix
from ptad.errors import SettingError
from ptad.tables.features import Features

Float32Matrix = npt.NDArray[np.float32]

#: The scalings that a method without one of its own is run under, and the name for methods that have one.
SCALINGS = ("standard", "minmax")
OWN = "own"


def one_hot(rows: Matrix, features: Features, indicators: bool = False) -> Float32Matrix:
    """Return numbers unchanged and one column per known category.

    A missing number stays NaN; a missing or unseen category has zeros. ``indicators`` adds one column per column of the
    table that is 1 where its cell is missing.
    """
    parts = [rows[:, features.numbers]]
    parts += [rows[:, [j]] == np.arange(features.n_categories[j]) for j in features.categories]
    if indicators:
        parts.append(np.isnan(rows[:, features.starts]))
    return np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")


def one_hot_columns(features: Features) -> npt.NDArray[np.int64]:
    """Return the column of the table that each column of :func:`one_hot` comes from."""
    counts = features.n_categories[features.categories]
    categories = np.repeat(features.column[features.categories], counts)
    return np.concatenate([features.column[features.numbers], categories])


def scale_columns(train: Float32Matrix, test: Float32Matrix, scaling: str) -> tuple[Float32Matrix, Float32Matrix]:
    """Impute missing cells with the median and scale both matrices, fitted on the training rows.

    "standard" gives zero mean and unit deviation, "minmax" the range [0, 1] on the training rows, "own" changes
    nothing. A constant column is only shifted; one without any value in the training rows is imputed with 0.
    """
    if np.isnan(train).any() or np.isnan(test).any():
        from sklearn.impute import SimpleImputer

        imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(train)
        train, test = imputer.transform(train), imputer.transform(test)
    if scaling == OWN:
        return train, test
    # Not scikit-learn's scalers, whose last digits differ: those of the published results are kept.
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
