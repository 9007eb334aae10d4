"""Read a labelled table: ``.npz`` with X and y, or a MATLAB file of the ODDS library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.benchmark.catalogue import DatasetInfo, dataset_info
from ptad.errors import DataError


class MissingFileError(DataError):
    """A folder does not hold a table."""


class WrongTableError(DataError):
    """A file holds another table than its name says."""


@dataclass(frozen=True)
class Dataset:
    """A labelled table.

    Attributes
    ----------
    name : str
        Its name.
    X : ndarray of shape (n_rows, n_features), float32
        The columns.
    y : ndarray of shape (n_rows,), bool
        True for an anomaly.
    """

    name: str
    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.bool_]


def find_file(directory: Path, info: DatasetInfo) -> Path | None:
    """The file of a table in a folder: .npz first, then .mat."""
    for suffix in (".npz", ".mat"):
        path = directory / f"{info.file}{suffix}"
        if path.is_file():
            return path
    return None


def load_dataset(directory: Path, name: str) -> Dataset:
    """Load a table of the catalogue from a folder, or say what is wrong with its file.

    A file with other counts than the catalogue's is refused: it would stand beside published figures of another table.
    """
    info = dataset_info(name)
    path = find_file(directory, info)
    if path is None:
        raise MissingFileError(f"{directory} holds neither {info.file}.npz nor {info.file}.mat. {info.how}")
    data = load_file(path, name)
    found, expected = (*data.X.shape, int(data.y.sum())), (info.rows, info.columns, info.anomalies)
    if found != expected:
        raise WrongTableError(f"{path}: rows, columns, anomalies are {found}, expected {expected}. {info.how}")
    return data


def load_file(path: Path, name: str | None = None) -> Dataset:
    """Load and check one labelled file."""
    arrays = _read_npz(path) if path.suffix == ".npz" else _read_mat(path)
    missing = [key for key in ("X", "y") if key not in arrays]
    if missing:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(
            f"{path} has no array {missing[0]!r}; it holds {found}. Save the table as X and the labels as y."
        )
    return _checked(path, name or path.stem, arrays["X"], arrays["y"])


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            lone = isinstance(content, np.ndarray)
            arrays = {} if lone else {key: content[key] for key in content.files if key in ("X", "y")}
    except Exception as error:  # a damaged file fails in whatever layer met the damage: zip, zlib, numpy
        raise DataError(f"{path} is not a readable .npz archive: {error}") from error
    if lone:
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
    except Exception as error:  # a damaged file fails in whatever layer met the damage: scipy has errors of its own
        raise DataError(f"{path} is not a readable MATLAB file: {error}") from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def _checked(path: Path, name: str, X: Any, y: Any) -> Dataset:
    for key, array in (("X", X), ("y", y)):
        if np.asarray(array).dtype.kind not in "biuf":
            raise DataError(f"{path}: {key} must hold real numbers, its type is {np.asarray(array).dtype}.")
    with np.errstate(over="ignore"):  # a number beyond single precision becomes infinite and is named below
        table = np.asarray(X, dtype=np.float32)
    labels = np.asarray(y, dtype=np.float64).reshape(-1)
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"{path}: X must have rows and columns, its shape is {table.shape}.")
    if len(labels) != len(table):
        raise DataError(f"{path}: X has {len(table)} rows but y has {len(labels)} labels.")
    strange = np.setdiff1d(np.unique(labels), (0.0, 1.0))
    if len(strange):
        raise DataError(f"{path}: labels must be 0 (normal) or 1 (anomaly), found {strange[0]:g}.")
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        count = f"{int(bad.sum())} of {bad.size} cells are not finite in single precision"
        raise DataError(f"{path}: {count}, the first in row {row}, column {column}.")
    n_anomalies = int(labels.sum())
    if n_anomalies in (0, len(labels)):
        kind = "anomalies" if n_anomalies else "normal rows"
        raise DataError(f"{path}: all rows are {kind}; both kinds are needed.")
    if len(labels) - n_anomalies < 4:
        raise DataError(f"{path}: only {len(labels) - n_anomalies} normal rows; at least 4 are needed to split them.")
    return Dataset(name, table, labels.astype(bool))
