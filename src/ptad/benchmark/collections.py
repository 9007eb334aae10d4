"""Collections of tables: the paper's twenty, macrOData, and any folder.

A collection has its own protocol (split by the seed, or fixed), its own groups, its own results file and page.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from ptad.benchmark.catalogue import catalogue, dataset_info
from ptad.benchmark.loading import (
    ARRAYS,
    TABLES,
    Dataset,
    MissingFileError,
    WrongTableError,
    find_file,
    load_file,
)
from ptad.errors import DataError, SettingError

MACRO_ORIGIN = (
    "macrOData (Ding et al., 2026): OddBench and OvRBench from the public repository psorus/Outformer, one .npz per "
    "table with train, test and y, in the folder 'macro' of the data folder."
)
CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Entry:
    """What a folder holds of one table: ``status`` is ok, missing, wrong or unreadable."""

    name: str
    status: str
    message: str


class Collection(ABC):
    """Some tables and how they are used.

    Attributes
    ----------
    name : str
        On the command line; its results are in ``NAME.csv``.
    directory : Path
        The folder that holds the tables.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        # A grid asks for the same table for every seed, scaling and method.
        self._cached = lru_cache(maxsize=4)(self.read)

    #: Seeds of a run unless told otherwise: they also decide the split where it is not fixed.
    seeds = "0-2"

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The tables, in order."""

    @abstractmethod
    def read(self, name: str) -> Dataset:
        """Read a table, or say what is wrong with its file."""

    def load(self, name: str, seed: int = 0) -> Dataset:
        """Read a table; the last few are kept in memory. The seed has no say: it decides the split."""
        return self._cached(name)

    def select(self, text: str = "all", sample: int | None = None) -> list[str]:
        """Return the tables that a list of names or groups means; ``sample`` of them, the same on every machine.

        The sample is drawn by :func:`fixed_sample`: ``select("all", 100)`` of macro are the tables of its deep methods.
        """
        words = [word.strip() for word in text.split(",") if word.strip()]
        groups = {group_of(self.name, name) for name in self.names}
        for word in words:
            if word != "all" and word not in groups and word not in self.names:
                shown = ", ".join([*sorted(groups), *self.names][:30])
                raise SettingError(f"The collection '{self.name}' has no table {word!r}. Choose from: all, {shown}.")
        chosen = [n for n in self.names if "all" in words or n in words or group_of(self.name, n) in words]
        return chosen if sample is None else fixed_sample(chosen, sample)

    def check(self) -> list[Entry]:
        """Read every table and compare it with what is expected."""
        if not self.directory.is_dir():
            raise DataError(f"There is no folder {str(self.directory)!r}. {self.origin}")
        return [self._checked(name) for name in self.names]

    @property
    def origin(self) -> str:
        """Where the tables come from."""
        return "Name a folder that holds the tables."

    def _checked(self, name: str) -> Entry:
        try:
            data = self.read(name)
        except MissingFileError as error:
            return Entry(name, "missing", str(error))
        except WrongTableError as error:
            return Entry(name, "wrong", str(error))
        except DataError as error:
            return Entry(name, "unreadable", str(error))
        return Entry(name, "ok", f"{len(data.X)} x {data.X.shape[1]}, {int(data.y.sum())} anomalies")


class PaperCollection(Collection):
    """The twenty tables of the paper, split by the seed; a file that is another table is refused."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(catalogue())

    @property
    def origin(self) -> str:
        return "Each table has its own source: ptad benchmark data --list."

    def read(self, name: str) -> Dataset:
        info = dataset_info(name)
        path = find_file(self.directory, info.file, ARRAYS)
        if path is None:
            raise MissingFileError(f"{self.directory} holds neither {info.file}.npz nor {info.file}.mat. {info.how}")
        data = load_file(path, name)
        found, expected = (*data.X.shape, int(data.y.sum())), (info.rows, info.columns, info.anomalies)
        if found != expected:  # it would stand beside published figures of another table
            raise WrongTableError(f"{path}: rows, columns, anomalies are {found}, expected {expected}. {info.how}")
        return data


class FolderCollection(Collection):
    """All labelled tables of a folder; its file SHA256SUMS, if there is one, says what should be there.

    Parameters
    ----------
    name, directory
        As in :class:`Collection`.
    label : str
        The label column of CSV and Parquet files.
    normal : sequence of str
        Label values of normal rows; 0 and false unless told otherwise.
    origin : str
        Where the tables come from.
    """

    def __init__(
        self, name: str, directory: Path, label: str = "label", normal: Sequence[str] = (), origin: str = ""
    ) -> None:
        super().__init__(name, directory)
        self.label = label
        self.normal = tuple(normal)
        self._origin = origin

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        if not self.directory.is_dir():
            raise DataError(f"There is no folder {str(self.directory)!r}. {self.origin}")
        files = [path.name for path in self.directory.iterdir() if path.is_file()] + list(self._checksums)
        names = {Path(file).stem for file in files if Path(file).suffix in (*ARRAYS, *TABLES)}
        if not names:
            raise DataError(f"{self.directory} holds no .npz, .mat, .csv or .parquet file. {self.origin}")
        return tuple(sorted(names))

    @property
    def origin(self) -> str:
        return self._origin or super().origin

    @cached_property
    def _checksums(self) -> dict[str, str]:
        path = self.directory / CHECKSUMS
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        pairs = [line.split(maxsplit=1) for line in lines if len(line.split()) == 2]
        return {name.lstrip("*"): digest for digest, name in pairs}

    def read(self, name: str) -> Dataset:
        path = find_file(self.directory, name)
        if path is None:
            raise MissingFileError(f"{self.directory} holds no table {name!r}. {self.origin}")
        expected = self._checksums.get(path.name)
        if expected is not None and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise WrongTableError(f"{path} is damaged: it has another checksum than {CHECKSUMS} says. {self.origin}")
        return load_file(path, name, self.label, self.normal)


def open_collection(
    word: str, data: Path | None = None, label: str = "label", normal: Sequence[str] = ()
) -> Collection:
    """Return ``paper``, ``macro``, or the collection in a folder.

    Parameters
    ----------
    word : str
        Name of a collection, or a folder.
    data : Path, optional
        The folder that holds the two named collections.
    label, normal
        For CSV and Parquet files.
    """
    if word not in ("paper", "macro"):
        folder = Path(word)
        if not folder.is_dir():
            raise DataError(f"There is no collection and no folder {word!r}. Choose paper, macro, or name a folder.")
        return FolderCollection(folder.resolve().name, folder, label, normal)
    if data is None or not data.is_dir():
        place = "" if data is None else f" {str(data)!r}"
        raise DataError(f"There is no folder{place} with the tables. Name it with --data or the variable PTAD_DATA.")
    if word == "paper":
        return PaperCollection(word, data)
    macro = FolderCollection(word, data / "macro", origin=MACRO_ORIGIN)
    macro.seeds = "0"  # the split is fixed
    return macro


def group_of(collection: str, name: str) -> str:
    """The group of a table: ``odd`` or ``ovr`` in macro, elsewhere the collection itself."""
    return name.partition("_")[0] if collection == "macro" else collection


def fixed_sample(names: Sequence[str], size: int) -> list[str]:
    """Draw ``size`` of the sorted names without replacement, with a generator of seed 0; fewer names are all taken."""
    ordered = sorted(names)
    drawn = np.random.default_rng(0).choice(len(ordered), min(size, len(ordered)), replace=False)
    return [ordered[place] for place in np.sort(drawn)]


def load_dataset(directory: Path, name: str) -> Dataset:
    """Read one of the paper's tables from a folder, or say what is wrong with its file."""
    return PaperCollection("paper", directory).read(name)
