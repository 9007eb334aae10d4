"""Collections of tables by name, and any folder.

A collection has its own protocol (split by the seed, or fixed), groups, results file and page. A new one is a file with
a child of :class:`Collection`, like ``macro_collection.py``, and a line in ``COLLECTIONS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.folder_collection import Collection, fixed_sample
from ptad.benchmark.loading import Dataset
from ptad.benchmark.macro_collection import MacroCollection
from ptad.benchmark.paper_collection import PaperCollection
from ptad.errors import DataError

__all__ = ["COLLECTIONS", "Collection", "fixed_sample", "group_of", "load_dataset", "open_collection"]

#: Named collections, which lie in the data folder.
COLLECTIONS: dict[str, type[Collection]] = {
    "paper": PaperCollection,
    "macro": MacroCollection,
}


def open_collection(
    word: str, data: Path | None = None, label: str = "label", normal: Sequence[str] = ()
) -> Collection:
    """Return a collection by its name, or the one in a folder.

    Parameters
    ----------
    word : str
        Name of a collection, or a folder.
    data : Path, optional
        The folder that holds the named collections.
    label, normal
        For CSV and Parquet files.
    """
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
