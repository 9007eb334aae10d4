"""The twenty tables of the paper: what a copy must look like and where it comes from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ptad.errors import SettingError


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


def dataset_title(name: str) -> str:
    """The name of a table as it stands in tables and figures; that of an unknown one as it is."""
    return catalogue()[name].title if name in catalogue() else name
