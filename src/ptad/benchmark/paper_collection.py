"""The twenty tables of the paper, split by the seed; a file that is another table is refused."""

from __future__ import annotations

from functools import cached_property

from ptad.benchmark.catalogue import catalogue, dataset_info
from ptad.benchmark.folder_collection import Collection
from ptad.benchmark.loading import ARRAYS, Dataset, MissingFileError, WrongTableError, find_file, load_file


class PaperCollection(Collection):
    """The tables of :mod:`ptad.benchmark.catalogue`."""

    origin = "Each table has its own source: ptad benchmark data --list."

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tables, in order."""
        return tuple(catalogue())

    def read(self, name: str) -> Dataset:
        """Read a table, or say what is wrong with its file."""
        info = dataset_info(name)
        path = find_file(self.directory, info.file, ARRAYS)
        if path is None:
            raise MissingFileError(f"{self.directory} holds neither {info.file}.npz nor {info.file}.mat. {info.how}")
        data = load_file(path, name)
        found, expected = (*data.X.shape, int(data.y.sum())), (info.rows, info.columns, info.anomalies)
        if found != expected:  # it would stand beside published figures of another table
            raise WrongTableError(f"{path}: rows, columns, anomalies are {found}, expected {expected}. {info.how}")
        return data
