"""Collections of tables: the paper's twenty, macrOData's hundreds, and the labelled files of any folder.

A collection has its own groups, default seeds, results file and page. A new one is a child of :class:`Collection` and a
line in ``COLLECTIONS``.
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


class WrongTableError(DataError):
    """A file holds another table than its name says, or is damaged."""


@dataclass(frozen=True)
class DatasetInfo:
    """One of the paper's tables: its name, its size, and where to get it."""

    name: str  # on the command line
    title: str  # in tables and figures
    file: str  # without extension
    rows: int
    columns: int
    anomalies: int
    origin: str
    how: str  # instructions for getting the file
    note: str = ""  # peculiarities, for readers of catalogue.toml


@cache
def catalogue() -> dict[str, DatasetInfo]:
    """Return the paper's tables by name, in alphabetical order."""
    text = files("ptad.benchmark").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: DatasetInfo(name=name, **entry) for name, entry in tomllib.loads(text).items()}


def dataset_info(name: str) -> DatasetInfo:
    """Return the entry of a table; an unknown name lists the choices."""
    if name not in catalogue():
        raise SettingError(f"There is no data set {name!r}. Choose from: {', '.join(catalogue())}.")
    return catalogue()[name]


def dataset_title(name: str) -> str:
    """Return the title of a table in tables and figures; its name if it is not in the catalogue."""
    return catalogue()[name].title if name in catalogue() else name


@dataclass(frozen=True)
class TableStatus:
    """Whether a table of a collection is usable: ``status`` is ok, missing, wrong or unreadable."""

    name: str
    status: str
    message: str


class Collection:
    """All labelled tables of a folder, and those that its file SHA256SUMS lists.

    Results are in ``NAME.csv``. ``label`` is the label column of CSV and Parquet files, ``normal`` its values in normal
    rows, by default 0 and false.
    """

    #: Default seeds of a run; they also decide the split where it is not fixed.
    seeds = "0-2"
    #: Where to get the tables, for messages.
    origin = "Name a folder that holds the tables."
    #: Subfolder of the data folder.
    subfolder = ""
    #: Settings by method that remove what was trained on these tables.
    settings: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self, name: str, directory: Path, label: str = "label", normal: Sequence[str] = ()) -> None:
        self.name = name
        self.directory = directory
        self.label = label
        self.normal = tuple(normal)
        # A grid reads the same table for every seed, scaling and method.
        self._cached = lru_cache(maxsize=4)(self.read)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tables, sorted."""
        self._check_folder()
        paths = [*filter(Path.is_file, self.directory.iterdir()), *map(Path, self._checksums)]
        names = {path.stem for path in paths if path.suffix in (*ARRAYS, *TABLES)}
        if not names:
            raise DataError(f"{self.directory} holds no .npz, .mat, .csv or .parquet file. {self.origin}")
        return tuple(sorted(names))

    @staticmethod
    def group(table: str) -> str | None:
        """Return the group that a table is averaged in; None if the collection has no groups."""
        return None

    def read(self, name: str) -> Dataset:
        """Read and check a table."""
        path = self._find(name, (*ARRAYS, *TABLES), f"{self.directory} holds no table {name!r}. {self.origin}")
        expected = self._checksums.get(path.name)
        if expected is not None and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise WrongTableError(f"{path} is damaged: it has another checksum than {CHECKSUMS} says. {self.origin}")
        return load_file(path, name, self.label, self.normal)

    def load(self, name: str, seed: int = 0) -> Dataset:
        """Read a table, from memory if it is one of the last few; all seeds have the same rows."""
        return self._cached(name)

    def select(self, text: str = "all", sample: int | None = None) -> list[str]:
        """Return the tables of a comma-separated list of names or groups, or a :func:`fixed_sample` of them."""
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
        """Read and check every table."""
        self._check_folder()
        return [self._status(name) for name in self.names]

    def _check_folder(self) -> None:
        if not self.directory.is_dir():
            raise DataError(f"There is no folder {str(self.directory)!r}. {self.origin}")

    def _find(self, stem: str, suffixes: Sequence[str], message: str) -> Path:
        for suffix in suffixes:
            if (path := self.directory / f"{stem}{suffix}").is_file():
                return path
        raise MissingFileError(message)

    def _status(self, name: str) -> TableStatus:
        try:
            data = self.read(name)
        except MissingFileError as error:
            return TableStatus(name, "missing", str(error))
        except WrongTableError as error:
            return TableStatus(name, "wrong", str(error))
        except DataError as error:
            return TableStatus(name, "unreadable", str(error))
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
        """The tables, sorted."""
        return tuple(catalogue())

    def read(self, name: str) -> Dataset:
        """Read and check a table."""
        info = dataset_info(name)
        missing = f"{self.directory} holds neither {info.file}.npz nor {info.file}.mat. {info.how}"
        path = self._find(info.file, ARRAYS, missing)
        data = load_file(path, name)
        size, expected = (*data.X.shape, int(data.y.sum())), (info.rows, info.columns, info.anomalies)
        if size != expected:  # its results would stand beside published ones of another table
            raise WrongTableError(f"{path}: rows, columns, anomalies are {size}, expected {expected}. {info.how}")
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
        """Return ``odd`` or ``ovr``."""
        return table.partition("_")[0]


class KeelCollection(Collection):
    """KEEL, unused for any choice: rare classes (``rare_*``), and one class against the rest (``class_*``)."""

    subfolder = "keel"
    origin = "KEEL's tables, without relatives of the other collections, are written by benchmarks/keel_tables.py."

    @staticmethod
    def group(table: str) -> str:
        """Return ``rare`` or ``class``."""
        return table.partition("_")[0]


#: Named collections, in the data folder.
COLLECTIONS: dict[str, type[Collection]] = {
    "paper": PaperCollection,
    "macro": MacroCollection,
    "keel": KeelCollection,
}


def open_collection(
    name: str, data: Path | None = None, label: str = "label", normal: Sequence[str] = ()
) -> Collection:
    """Return a named collection from the data folder ``data``, or that of the folder ``name``."""
    if name not in COLLECTIONS:
        folder = Path(name)
        if not folder.is_dir():
            choices = ", ".join(COLLECTIONS)
            raise DataError(f"There is no collection and no folder {name!r}. Choose {choices}, or name a folder.")
        return Collection(folder.resolve().name, folder, label, normal)
    if data is None or not data.is_dir():
        place = "" if data is None else f" {str(data)!r}"
        raise DataError(f"There is no folder{place} with the tables.", "Name it with {data} or the variable PTAD_DATA.")
    return COLLECTIONS[name](name, data / COLLECTIONS[name].subfolder, label, normal)


def group_of(collection: str, table: str) -> str:
    """Return the group of a table; the name of the collection if it has no groups."""
    return COLLECTIONS.get(collection, Collection).group(table) or collection


def load_dataset(directory: Path, name: str) -> Dataset:
    """Read and check one of the paper's tables in a folder."""
    return PaperCollection("paper", directory).read(name)


def fixed_sample(names: Sequence[str], size: int) -> list[str]:
    """Draw ``size`` of the sorted names with seed 0, without replacement; all of them if there are no more."""
    ordered = sorted(names)
    drawn = np.random.default_rng(0).choice(len(ordered), min(size, len(ordered)), replace=False)
    return [ordered[place] for place in np.sort(drawn)]


def catalogue_lines() -> Iterator[str]:
    """Yield rows, columns, anomalies and origin of the paper's tables as text."""
    for info in catalogue().values():
        yield f"{info.name:18} {info.rows:>7} x {info.columns:<4} {info.anomalies:>6}  {info.origin}"


def check_lines(collections: Sequence[Collection]) -> Iterator[tuple[str, bool]]:
    """Yield the state of collections as lines of text, and whether a line reports something unusable."""
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
