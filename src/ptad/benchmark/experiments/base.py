"""What an experiment is: variants of methods measured on tables, or a measurement of something besides accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptad.benchmark.markdown import Table
from ptad.benchmark.plan import RunSettings, Variant
from ptad.benchmark.results import ResultsFolder
from ptad.benchmark.runner import Loader

#: The four tables of the paper's figures on counts and weights.
FOUR_TABLES = ("campaign", "cardio", "wbc", "thyroid")


def paper_variant(name: str, **network: Any) -> Variant:
    """Return the paper preset with some settings of its network replaced."""
    config = {f"network.{key}": value for key, value in network.items()}
    return Variant(name, "ptad-paper", {"config": config} if config else {})


@dataclass(frozen=True)
class Experiment:
    """A grid of variants and tables."""

    name: str  # on the command line
    title: str  # of its table
    variants: tuple[Variant, ...]  # the rows of its table, in this order
    datasets: tuple[str, ...] = ()  # all tables of the collection if empty
    make_loader: Callable[[Loader], Loader] | None = None  # gives a loader that knows the names in ``datasets``
    page: Callable[[ResultsFolder], str] | None = None  # by default, averages over the paper's tables


@dataclass(frozen=True)
class Measurement:
    """A measurement whose rows are written to ``NAME.csv`` beside the results file."""

    title: str  # of the table on the command line
    #: Yields the rows, from the data folder, the path of the results file and the settings of the run.
    measure: Callable[[Path, Path, RunSettings], Iterable[Mapping[str, Any]]]
    #: Makes tables of the rows; by default one table with all columns, numbers rounded to four digits.
    format_rows: Callable[[Sequence[Mapping[str, Any]]], list[Table]] | None = None

    def tables(self, rows: Sequence[Mapping[str, Any]], title: str = "") -> list[Table]:
        """Return the rows as tables."""
        if self.format_rows is not None:
            return self.format_rows(rows)
        return [Table(title, list(rows[0]), [[_rounded(value) for value in row.values()] for row in rows])]


def _rounded(value: Any) -> str:
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return f"{number:.4g}" if number % 1 > 0 else str(value)
