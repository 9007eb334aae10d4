"""Labelled tables and their split: a random half of the normal rows trains, the other half and all anomalies test.

Tables are read from ``.npz``, MATLAB files of the ODDS library, CSV or Parquet with a label column. An archive holds
``X`` and ``y``, or, where its publishers fixed the split, ``train``, ``test`` and ``y``, the labels of the test rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.arrays import Mask
from ptad.benchmark.encoding import one_hot
from ptad.errors import DataError, UserError

#: Suffixes of readable files; of several files of one name the first in this order is read.
ARRAYS, TABLES = (".npz", ".mat"), (".parquet", ".csv")


@dataclass(frozen=True)
class Split:
    """Numbers of the training rows, all normal, and of the test rows; no row is in both."""

    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """A labelled table."""

    name: str
    X: npt.NDArray[np.float32]  # (n_rows, n_features); NaN is a missing cell
    y: Mask  # (n_rows,), True for an anomaly
    n_train: int | None = None  # with a fixed split: the number of training rows, which come first

    def split(self, seed: int) -> Split:
        """Return the fixed split, or a random one."""
        if self.n_train is None:
            return half_split(self.y, seed)
        return Split(np.arange(self.n_train), np.arange(self.n_train, len(self.y)))


def half_split(y: Mask, seed: int) -> Split:
    """Draw half of the normal rows for training.

    Of an odd number of normal rows the smaller half trains. Test rows stay in the order of the file, so that their
    position says nothing about their label.
    """
    labels = np.asarray(y, dtype=bool)
    normal = np.flatnonzero(~labels)
    if len(normal) < 2:
        raise DataError(f"The split needs at least 2 normal rows, got {len(normal)}.")
    shuffled = np.random.default_rng([seed, 0]).permutation(normal)
    train = np.sort(shuffled[: len(normal) // 2])
    test = np.setdiff1d(np.arange(len(labels)), train, assume_unique=True)
    return Split(train, test)


def cap_split(split: Split, y: Mask, seed: int, max_train: int | None, max_test: int | None) -> Split:
    """Subsample both parts; the test rows keep their share of anomalies, and at least one row of each label."""
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


def duplicate_share(X: npt.NDArray[np.float32], y: Mask, split: Split) -> float:
    """Return the share of normal test rows that are duplicates of training rows."""
    normal = split.test[~y[split.test]]
    if len(normal) == 0:
        return 0.0
    rows = np.ascontiguousarray(X + np.float32(0.0))  # turns -0.0 into 0.0, which has other bytes
    row_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return float(np.isin(row_bytes[normal], row_bytes[split.train]).mean())


def load_file(path: Path, name: str | None = None, label: str = "label", normal: Sequence[str] = ()) -> Dataset:
    """Load and check one labelled file.

    ``label`` is the label column of a CSV or Parquet file, ``normal`` its values in normal rows, by default 0 and
    false.
    """
    name = name or path.stem
    if path.suffix in TABLES:
        return _read_labelled(path, name, label, normal)
    arrays = _read_npz(path) if path.suffix == ".npz" else _read_mat(path)
    fixed = "train" in arrays or "test" in arrays
    for key in ("train", "test", "y") if fixed else ("X", "y"):
        if key not in arrays:
            names = ", ".join(sorted(arrays)) or "nothing"
            raise DataError(
                f"{path} has no array {key!r}; it holds {names}. Save the table as X and the labels as y, or train, "
                "test and y."
            )
    if not fixed:
        return _checked(path, name, arrays["X"], arrays["y"])
    train, test = (_matrix(path, key, arrays[key]) for key in ("train", "test"))
    if train.shape[1] != test.shape[1] or len(train) < 2:
        raise DataError(f"{path}: train has shape {train.shape}, test {test.shape}.")
    labels = _labels(path, arrays["y"], len(test))
    return Dataset(name, np.concatenate([train, test]), np.r_[np.zeros(len(train), dtype=bool), labels], len(train))


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            single = isinstance(content, np.ndarray)
            names = {"X", "y", "train", "test"} & set(() if single else content.files)
            arrays = {name: content[name] for name in names}
    except Exception as error:  # zip, zlib and numpy each have errors of their own
        raise DataError(f"{path} is not a readable .npz archive: {error}") from error
    if single:
        raise DataError(f"{path} holds a single array, not an archive. Save the table as X and the labels as y.")
    return arrays


def _read_mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise DataError(
            f"{path} is a MATLAB v7.3 (HDF5) file, which is not read here. Save it with '-v7' or as .npz with X and y."
        ) from error
    except Exception as error:  # scipy's and zlib's errors for damaged files
        raise DataError(f"{path} is not a readable MATLAB file: {error}") from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def _read_labelled(path: Path, name: str, label: str, normal: Sequence[str]) -> Dataset:
    """Read a table with a label column; categories are one-hot encoded."""
    from ptad.jobs.labels import check_label, is_anomaly
    from ptad.tables import fit_schema, read_table

    try:
        table = read_table(path)
        check_label(label, table.column_names, str(path))
        labels = is_anomaly(table[label].combine_chunks(), normal, (), label)
        columns = table.drop_columns([label])
        schema = fit_schema(columns)
        rows = one_hot(schema.encode(columns), schema.features)
    except UserError as error:
        raise DataError(f"{path}: {error}") from error
    return _checked(path, name, rows, labels, gaps=True)


def _checked(path: Path, name: str, X: Any, y: Any, gaps: bool = False) -> Dataset:
    table = _matrix(path, "X", X, gaps)
    labels = _labels(path, y, len(table))
    if (n_normal := int((~labels).sum())) < 4:
        raise DataError(f"{path}: only {n_normal} normal rows; at least 4 are needed to split them.")
    return Dataset(name, table, labels)


def _matrix(path: Path, key: str, array: Any, gaps: bool = False) -> npt.NDArray[np.float32]:
    """Check the array and return it in single precision; ``gaps`` allows missing cells."""
    _check_real(path, key, array)
    with np.errstate(over="ignore"):  # too large a number becomes infinite and is refused below
        table = np.asarray(array, dtype=np.float32)
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"{path}: {key} must have rows and columns, its shape is {table.shape}.")
    bad = np.isinf(table) if gaps else ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        count = f"{int(bad.sum())} of {bad.size} cells are not finite in single precision"
        raise DataError(f"{path}: {count}, the first in row {row}, column {column}.")
    return table


def _labels(path: Path, array: Any, n_rows: int) -> Mask:
    _check_real(path, "y", array)
    labels = np.asarray(array, dtype=np.float64).reshape(-1)
    if len(labels) != n_rows:
        raise DataError(f"{path}: there are {n_rows} rows but y has {len(labels)} labels.")
    others = np.setdiff1d(np.unique(labels), (0.0, 1.0))
    if len(others):
        raise DataError(f"{path}: labels must be 0 (normal) or 1 (anomaly), found {others[0]:g}.")
    if labels.sum() in (0, len(labels)):
        raise DataError(f"{path}: all rows are {'anomalies' if labels.any() else 'normal rows'}; both are needed.")
    return labels.astype(bool)


def _check_real(path: Path, key: str, array: Any) -> None:
    if np.asarray(array).dtype.kind not in "biuf":
        raise DataError(f"{path}: {key} must hold real numbers, its type is {np.asarray(array).dtype}.")
