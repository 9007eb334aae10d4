"""A collection of tables: the labelled files of a folder. Other collections are children that say what differs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ptad.benchmark.loading import ARRAYS, TABLES, Dataset, MissingFileError, WrongTableError, find_file, load_file
from ptad.errors import DataError, SettingError

CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Entry:
    """What a folder holds of one table: ``status`` is ok, missing, wrong or unreadable."""

    name: str
    status: str
    message: str


class Collection:
    """All labelled tables of a folder; its file SHA256SUMS, if there is one, says what should be there.

    Parameters
    ----------
    name : str
        On the command line; its results are in ``NAME.csv``.
    directory : Path
        The folder that holds the tables.
    label : str
        The label column of CSV and Parquet files.
    normal : sequence of str
        Label values of normal rows; 0 and false unless told otherwise.
    """

    #: Seeds of a run unless told otherwise: they also decide the split where it is not fixed.
    seeds = "0-2"
    #: Where the tables come from.
    origin = "Name a folder that holds the tables."
    #: Where they lie in the data folder.
    subfolder = ""
    #: Settings of methods that were trained on these tables, so that they are measured without that.
    settings: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self, name: str, directory: Path, label: str = "label", normal: Sequence[str] = ()) -> None:
        self.name = name
        self.directory = directory
        self.label = label
        self.normal = tuple(normal)
        # A grid asks for the same table for every seed, scaling and method.
        self._cached = lru_cache(maxsize=4)(self.read)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tables, in order."""
        self._check_folder()
        files = [path.name for path in self.directory.iterdir() if path.is_file()] + list(self._checksums)
        names = {Path(file).stem for file in files if Path(file).suffix in (*ARRAYS, *TABLES)}
        if not names:
            raise DataError(f"{self.directory} holds no .npz, .mat, .csv or .parquet file. {self.origin}")
        return tuple(sorted(names))

    @staticmethod
    def group(table: str) -> str | None:
        """The group that a table is averaged in; None: all tables are one."""
        return None

    def read(self, name: str) -> Dataset:
        """Read a table, or say what is wrong with its file."""
        path = find_file(self.directory, name)
        if path is None:
            raise MissingFileError(f"{self.directory} holds no table {name!r}. {self.origin}")
        expected = self._checksums.get(path.name)
        if expected is not None and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise WrongTableError(f"{path} is damaged: it has another checksum than {CHECKSUMS} says. {self.origin}")
        return load_file(path, name, self.label, self.normal)

    def load(self, name: str, seed: int = 0) -> Dataset:
        """Read a table; the last few are kept in memory. The seed has no say: it decides the split."""
        return self._cached(name)

    def select(self, text: str = "all", sample: int | None = None) -> list[str]:
        """Return the tables that a list of names or groups means; ``sample`` of them, the same on every machine.

        The sample is drawn by :func:`fixed_sample`: ``select("all", 100)`` of macro are the tables of its deep methods.
        """
        words = [word.strip() for word in text.split(",") if word.strip()]
        groups = {name: self.group(name) or self.name for name in self.names}
        known = [*sorted(set(groups.values())), *self.names]
        for word in words:
            if word != "all" and word not in known:
                shown = ", ".join(known[:30])
                raise SettingError(f"The collection '{self.name}' has no table {word!r}. Choose from: all, {shown}.")
        chosen = [name for name in self.names if {"all", name, groups[name]} & set(words)]
        return chosen if sample is None else fixed_sample(chosen, sample)

    def check(self) -> list[Entry]:
        """Read every table and compare it with what is expected."""
        self._check_folder()
        return [self._checked(name) for name in self.names]

    def _check_folder(self) -> None:
        if not self.directory.is_dir():
            raise DataError(f"There is no folder {str(self.directory)!r}. {self.origin}")

    def _checked(self, name: str) -> Entry:
        try:
            data = self.read(name)
        except DataError as error:
            return Entry(name, getattr(error, "status", "unreadable"), str(error))
        return Entry(name, "ok", f"{len(data.X)} x {data.X.shape[1]}, {int(data.y.sum())} anomalies")

    @cached_property
    def _checksums(self) -> dict[str, str]:
        path = self.directory / CHECKSUMS
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        pairs = [line.split(maxsplit=1) for line in lines if len(line.split()) == 2]
        return {name.lstrip("*"): digest for digest, name in pairs}


def fixed_sample(names: Sequence[str], size: int) -> list[str]:
    """Draw ``size`` of the sorted names without replacement, with a generator of seed 0; fewer names are all taken."""
    ordered = sorted(names)
    drawn = np.random.default_rng(0).choice(len(ordered), min(size, len(ordered)), replace=False)
    return [ordered[place] for place in np.sort(drawn)]
