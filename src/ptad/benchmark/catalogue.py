"""The twenty tables of the comparison, and a check of the folder that holds them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from ptad.errors import DataError, SettingError


@dataclass(frozen=True)
class DatasetInfo:
    """What a copy of a table must look like and where it comes from.

    Attributes
    ----------
    name, title : str
        The name on the command line and the one in tables.
    file : str
        File name without extension.
    rows, columns, anomalies : int
        Expected counts.
    origin, how, note : str
        Where it comes from, how to get it, what to know about it.
    """

    name: str
    title: str
    file: str
    rows: int
    columns: int
    anomalies: int
    origin: str
    how: str
    note: str = ""


@cache
def catalogue() -> dict[str, DatasetInfo]:
    """All tables by name, in alphabetical order."""
    text = files("ptad.benchmark").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: DatasetInfo(name=name, **entry) for name, entry in tomllib.loads(text).items()}


def dataset_info(name: str) -> DatasetInfo:
    """The entry of a table; an unknown name lists the choices."""
    if name not in catalogue():
        raise SettingError(f"There is no data set {name!r}. Choose from: {', '.join(catalogue())}.")
    return catalogue()[name]


@dataclass(frozen=True)
class FolderEntry:
    """What was found for one table: ``status`` is ok, missing, wrong or unreadable."""

    info: DatasetInfo
    status: str
    message: str


def check_folder(directory: Path) -> list[FolderEntry]:
    """Read every table of the catalogue from a folder and compare it with what is expected."""
    from ptad.benchmark.loading import find_file, load_dataset

    if not directory.is_dir():
        raise DataError(f"There is no folder {str(directory)!r}. Name the folder that holds the data sets.")
    entries = []
    for info in catalogue().values():
        if find_file(directory, info) is None:
            entries.append(FolderEntry(info, "missing", f"no {info.file}.npz or {info.file}.mat. {info.how}"))
            continue
        try:
            data = load_dataset(directory, info.name)
        except DataError as error:
            entries.append(FolderEntry(info, "unreadable", str(error)))
            continue
        found = (*data.X.shape, int(data.y.sum()))
        expected = (info.rows, info.columns, info.anomalies)
        if found != expected:
            message = f"rows, columns, anomalies are {found}, expected {expected}. {info.how}"
            entries.append(FolderEntry(info, "wrong", message))
        else:
            entries.append(FolderEntry(info, "ok", f"{info.rows} x {info.columns}, {info.anomalies} anomalies"))
    return entries
