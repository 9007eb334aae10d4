"""The split of every cell: a random half of the normal rows trains, the rest and all anomalies test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ptad.errors import DataError

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Row numbers of the training and of the test rows; no row is in both, none of the training rows is an anomaly."""

    train: IntArray
    test: IntArray


def half_split(y: npt.NDArray[np.bool_], seed: int) -> Split:
    """Split by the labels; the seed decides which normal rows train.

    Of an odd number of normal rows the smaller half trains. Test rows are in the order of the file, so that nothing
    can be read off their position.
    """
    labels = np.asarray(y, dtype=bool)
    normal = np.flatnonzero(~labels)
    if len(normal) < 2:
        raise DataError(f"The split needs at least 2 normal rows, got {len(normal)}.")
    shuffled = np.random.default_rng([seed, 0]).permutation(normal)
    train = np.sort(shuffled[: len(normal) // 2])
    test = np.setdiff1d(np.arange(len(labels)), train, assume_unique=True)
    return Split(train, test)


def cap_split(split: Split, y: npt.NDArray[np.bool_], seed: int, max_train: int | None, max_test: int | None) -> Split:
    """Draw fewer rows at random; the test rows keep their share of anomalies (at least one of each kind stays)."""
    rng = np.random.default_rng([seed, 1])
    train, test = split.train, split.test
    if max_train is not None and len(train) > max_train:
        train = np.sort(rng.choice(train, max_train, replace=False))
    if max_test is not None and len(test) > max_test:
        if max_test < 2:
            raise DataError(f"At least 2 test rows are needed, one of each kind; the cap is {max_test}.")
        labels = np.asarray(y, dtype=bool)[test]
        n_anomalies = int(np.clip(round(max_test * labels.mean()), 1, max_test - 1))
        anomalies = rng.choice(test[labels], min(n_anomalies, int(labels.sum())), replace=False)
        normal = rng.choice(test[~labels], min(max_test - len(anomalies), int((~labels).sum())), replace=False)
        test = np.sort(np.concatenate([anomalies, normal]))
    return Split(train, test)


def duplicate_share(X: npt.NDArray[np.float32], y: npt.NDArray[np.bool_], split: Split) -> float:
    """Share of the normal test rows that are duplicates of training rows."""
    normal = split.test[~np.asarray(y, dtype=bool)[split.test]]
    if len(normal) == 0:
        return 0.0
    known = set(_row_keys(X[split.train]))
    return sum(key in known for key in _row_keys(X[normal])) / len(normal)


def _row_keys(rows: npt.NDArray[np.float32]) -> list[bytes]:
    """The bytes of every row; equal for equal rows."""
    rows = np.ascontiguousarray(rows, dtype=np.float32) + np.float32(0.0)  # -0.0 and 0.0 are the same value
    return [row.tobytes() for row in rows]
