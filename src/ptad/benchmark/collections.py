"""Collections of tables: the paper's twenty, macrOData's hundreds, and the labelled files of any folder.

A collection has its own protocol (split by the seed, or fixed), groups, results file and page. A new one is a child of
:class:`Collection` and a line in ``COLLECTIONS``.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ptad.benchmark.loading import ARRAYS, TABLES, Dataset, load_file
from ptad.errors import DataError, SettingError

CHECKSUMS = "SHA256SUMS"


class MissingFileError(DataError):
    """A folder does not hold a table."""

    status = "missing"


class WrongTableError(DataError):
    """A file holds another table than its name says."""

    status = "wrong"


@dataclass(frozen=True)
class DatasetInfo:
    """What a copy of one of the paper's tables must look like, where it comes from, what to know about it."""

    name: str  # on the command line
    title: str  # in tables and figures
    file: str  # without extension
    rows: int
    columns: int
    anomalies: int
    origin: str
    how: str
    note: str = ""


@cache
def catalogue() -> dict[str, DatasetInfo]:
    """The paper's tables by name, in alphabetical order."""
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


@dataclass(frozen=True)
class TableStatus:
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
        found = [path.name for path in self.directory.iterdir() if path.is_file()] + list(self._checksums)
        names = {Path(file).stem for file in found if Path(file).suffix in (*ARRAYS, *TABLES)}
        if not names:
            raise DataError(f"{self.directory} holds no .npz, .mat, .csv or .parquet file. {self.origin}")
        return tuple(sorted(names))

    @staticmethod
    def group(table: str) -> str | None:
        """The group that a table is averaged in; None: all tables are one."""
        return None

    def read(self, name: str) -> Dataset:
        """Read a table, or say what is wrong with its file."""
        path = self._find(name, (*ARRAYS, *TABLES), f"{self.directory} holds no table {name!r}. {self.origin}")
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

    def check(self) -> list[TableStatus]:
        """Read every table and compare it with what is expected."""
        self._check_folder()
        return [self._checked(name) for name in self.names]

    def _check_folder(self) -> None:
        if not self.directory.is_dir():
            raise DataError(f"There is no folder {str(self.directory)!r}. {self.origin}")

    def _find(self, stem: str, suffixes: Sequence[str], otherwise: str) -> Path:
        for suffix in suffixes:
            if (path := self.directory / f"{stem}{suffix}").is_file():
                return path
        raise MissingFileError(otherwise)

    def _checked(self, name: str) -> TableStatus:
        try:
            data = self.read(name)
        except DataError as error:
            return TableStatus(name, getattr(error, "status", "unreadable"), str(error))
        return TableStatus(name, "ok", f"{len(data.X)} x {data.X.shape[1]}, {int(data.y.sum())} anomalies")

    @cached_property
    def _checksums(self) -> dict[str, str]:
        path = self.directory / CHECKSUMS
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        pairs = [line.split(maxsplit=1) for line in lines if len(line.split()) == 2]
        return {name.lstrip("*"): digest for digest, name in pairs}


class PaperCollection(Collection):
    """The twenty tables of the paper, split by the seed; a file that is another table is refused."""

    origin = "Each table has its own source: ptad benchmark data --list."

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tables, in order."""
        return tuple(catalogue())

    def read(self, name: str) -> Dataset:
        """Read a table, or say what is wrong with its file."""
        info = dataset_info(name)
        missing = f"{self.directory} holds neither {info.file}.npz nor {info.file}.mat. {info.how}"
        path = self._find(info.file, ARRAYS, missing)
        data = load_file(path, name)
        found, expected = (*data.X.shape, int(data.y.sum())), (info.rows, info.columns, info.anomalies)
        if found != expected:  # it would stand beside published figures of another table
            raise WrongTableError(f"{path}: rows, columns, anomalies are {found}, expected {expected}. {info.how}")
        return data


class MacroCollection(Collection):
    """macrOData: OddBench (``odd_*``, semantic anomalies) and OvRBench (``ovr_*``, one class against the rest)."""

    seeds = "0"  # the split is fixed
    subfolder = "macro"
    settings: Mapping[str, Mapping[str, Any]] = {"ptad": {"without": ("pretrained",)}}
    origin = (
        "macrOData (Ding et al., 2026): OddBench and OvRBench from the public repository psorus/Outformer, one .npz "
        "per table with train, test and y, in the folder 'macro' of the data folder."
    )

    @staticmethod
    def group(table: str) -> str:
        """``odd`` or ``ovr``."""
        return table.partition("_")[0]


#: Named collections, which lie in the data folder.
COLLECTIONS: dict[str, type[Collection]] = {
    "paper": PaperCollection,
    "macro": MacroCollection,
}


def open_collection(
    word: str, data: Path | None = None, label: str = "label", normal: Sequence[str] = ()
) -> Collection:
    """Return a collection by its name, from the folder ``data``, or the one in the folder that ``word`` names."""
    if word not in COLLECTIONS:
        folder = Path(word)
        if not folder.is_dir():
            names = ", ".join(COLLECTIONS)
            raise DataError(f"There is no collection and no folder {word!r}. Choose {names}, or name a folder.")
        return Collection(folder.resolve().name, folder, label, normal)
    if data is None or not data.is_dir():
        place = "" if data is None else f" {str(data)!r}"
        raise DataError(f"There is no folder{place} with the tables. Name it with --data or the variable PTAD_DATA.")
    return COLLECTIONS[word](word, data / COLLECTIONS[word].subfolder, label, normal)


def group_of(collection: str, table: str) -> str:
    """The group of a table; where a collection has none, the collection itself."""
    return COLLECTIONS.get(collection, Collection).group(table) or collection


def load_dataset(directory: Path, name: str) -> Dataset:
    """Read one of the paper's tables from a folder, or say what is wrong with its file."""
    return PaperCollection("paper", directory).read(name)


def fixed_sample(names: Sequence[str], size: int) -> list[str]:
    """Draw ``size`` of the sorted names without replacement, with a generator of seed 0; fewer names are all taken."""
    ordered = sorted(names)
    drawn = np.random.default_rng(0).choice(len(ordered), min(size, len(ordered)), replace=False)
    return [ordered[place] for place in np.sort(drawn)]


def catalogue_lines() -> Iterator[str]:
    """The paper's tables: rows, columns, anomalies, origin."""
    for info in catalogue().values():
        yield f"{info.name:18} {info.rows:>7} x {info.columns:<4} {info.anomalies:>6}  {info.origin}"


def check_lines(collections: Sequence[Collection]) -> Iterator[tuple[str, bool]]:
    """What is there of some collections, line by line, and whether a line says that something is not usable."""
    for collection in collections:
        try:
            entries = collection.check()
        except DataError as error:
            yield f"{collection.name}: {error}", True
            continue
        bad = [entry for entry in entries if entry.status != "ok"]
        yield f"{collection.name}: {len(entries) - len(bad)} of {len(entries)} tables are usable", bool(bad)
        for entry in bad or entries[: 0 if len(entries) > 20 else None]:
            yield f"  {entry.name:24} {entry.status:10} {entry.message}", entry.status != "ok"
