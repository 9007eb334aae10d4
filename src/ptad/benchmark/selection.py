"""What the lists of the command line mean (methods, tables, seeds, scalings), and the run that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ptad.benchmark.collections import Collection
from ptad.benchmark.encoding import SCALINGS
from ptad.benchmark.peers import CHEAP_PEERS, DEEP_PEERS, PAPER_PEERS, PEERS, make_peer
from ptad.benchmark.plan import RunSettings, make_grid
from ptad.benchmark.runner import run_grid
from ptad.benchmark.store import ResultStore, Row
from ptad.benchmark.workers import Executor, run_tasks
from ptad.errors import SettingError

#: Words that stand for several methods.
METHOD_GROUPS = {
    "all": tuple(PEERS),
    "paper": (*PAPER_PEERS, "ptad", "ptad-paper"),
    "cheap": CHEAP_PEERS,
    "deep": DEEP_PEERS,
}


def compare_methods(
    tables: Collection,
    out: Path,
    settings: RunSettings,
    *,
    methods: str = "all",
    datasets: str = "all",
    sample: int | None = None,
    seeds: str | None = None,
    scalings: str = ",".join(SCALINGS),
    on_row: Callable[[Row], None] | None = None,
    execute: Executor = run_tasks,
) -> list[Row]:
    """Measure methods on tables of a collection, named as on the command line; see :func:`run_grid`."""
    chosen = tables.select(datasets, sample)
    grid = make_grid(parse_methods(methods), chosen, parse_seeds(seeds or tables.seeds), parse_scalings(scalings))
    return run_grid(grid, ResultStore(out), tables.load, settings, on_row, execute)


def parse_methods(text: str) -> list[str]:
    """Names and words such as ``cheap``; unknown ones list the choices."""
    found: list[str] = []
    for word in _names(text, "method"):
        # A detector of PyOD may be written in any case; its own spelling makes it one method.
        found += METHOD_GROUPS[word] if word in METHOD_GROUPS else [make_peer(word).name]
    return list(dict.fromkeys(found))


def parse_seeds(text: str) -> list[int]:
    """``3``, ``0-4`` or ``0,2,7``, in any mixture."""
    seeds: list[int] = []
    for part in _names(text, "seed"):
        first, dash, last = part.partition("-")
        try:
            low = int(first)
            high = int(last) if dash else low
        except ValueError as error:
            raise SettingError(f"Seeds are written like 0-4 or 0,2,7. Got {text!r} instead.") from error
        if low > high:
            raise SettingError(f"The seeds {part!r} run backwards.")
        seeds.extend(range(low, high + 1))
    return list(dict.fromkeys(seeds))


def parse_scalings(text: str) -> list[str]:
    """Names of scalings."""
    names = _names(text, "scaling")
    for name in names:
        if name not in SCALINGS:
            raise SettingError(f"There is no scaling {name!r}. Choose from: {', '.join(SCALINGS)}.")
    return names


def _names(text: str, kind: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise SettingError(f"Name at least one {kind}.")
    return list(dict.fromkeys(names))
