"""Encoded rows as a matrix of numbers alone, for methods that know neither categories nor missing cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptad.tables.features import Features

Matrix = npt.NDArray[np.float32]


def one_hot(rows: npt.NDArray[np.float64], features: Features, indicators: bool = False) -> Matrix:
    """Return numbers as they are and one column per known category.

    A missing number stays NaN; a missing or unseen category has zeros. ``indicators`` adds one column per column of the
    table that says whether its cell is missing.
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


def fill_gaps(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    """Put the median of the training rows into missing cells; 0 where no training row has a value."""
    gone = np.isnan(train)
    if not gone.any() and not np.isnan(test).any():
        return train, test
    middle = np.zeros(train.shape[1], dtype=np.float32)
    known = ~gone.all(axis=0)
    middle[known] = np.nanmedian(train[:, known], axis=0)
    return np.where(gone, middle, train), np.where(np.isnan(test), middle, test)
