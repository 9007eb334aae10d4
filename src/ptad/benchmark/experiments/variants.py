"""What an experiment is: named variants of methods on some tables, or a measurement of something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptad.benchmark.markdown import Table
from ptad.benchmark.plan import RunSettings, Variant
from ptad.benchmark.runner import Loader, run_grid
from ptad.benchmark.store import Results

#: The four tables of the paper's figures on counts and weights.
FOUR_TABLES = ("campaign", "cardio", "wbc", "thyroid")


def paper_variant(name: str, **network: Any) -> Variant:
    """PTAD's paper preset with some settings of its network replaced."""
    config = {f"network.{key}": value for key, value in network.items()}
    return Variant(name, "ptad-paper", {"config": config} if config else {})


@dataclass(frozen=True)
class Experiment:
    """A grid of variants and tables.

    ``make_loader`` turns the collection's loader into one that understands the names of ``datasets``; ``page`` says
    what its page shows in place of averages over the paper's tables.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    datasets: tuple[str, ...] = ()  # all tables of the collection
    make_loader: Callable[[Loader], Loader] | None = None
    page: Callable[[Results], str] | None = None
    run: Callable[..., Any] = run_grid  # or something that takes and gives the same


@dataclass(frozen=True)
class Measurement:
    """What is measured besides accuracy; its rows are written to ``NAME.csv`` beside the results file.

    ``measure`` gives them one after the other, from data folder, results file and settings; ``read`` makes tables of
    what the file holds, by default one with all of it.
    """

    title: str
    measure: Callable[[Path, Path, RunSettings], Iterable[Mapping[str, Any]]]
    read: Callable[[Sequence[Mapping[str, Any]]], list[Table]] | None = None

    def tables(self, rows: Sequence[Mapping[str, Any]], title: str = "") -> list[Table]:
        """The rows as tables; numbers of a plain file with four digits."""
        if self.read is not None:
            return self.read(rows)
        return [Table(title, list(rows[0]), [[_short(value) for value in row.values()] for row in rows])]


def _short(value: Any) -> str:
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return f"{number:.4g}" if number % 1 > 0 else str(value)
