"""Output of the commands: errors, logs, progress and tables.

Data go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ptad.errors import Message, Option
from ptad.jobs import Progress
from ptad.progress import on_terminal, shown_progress

if TYPE_CHECKING:
    from ptad.tables.places import Places

MIN_FOR_PERCENT = 20  # of fewer things, counts are shown without a percentage
# options whose names differ from their parameters, and the form of an entry of a mapping
_FLAGS = {"types": "--type", "config": "--set", "random_state": "--seed"}
_ENTRIES = {"types": "COLUMN=TYPE", "config": "GROUP.SETTING=VALUE"}
_SWITCHED_OFF = {"append": "--only-scores"}


def on_command_line(option: Option) -> str:
    """Return an option as it is written on the command line: ``--type day=date``, ``--false-alarm-rate 0.01``."""
    flag = _FLAGS.get(option.name, f"--{option.name.replace('_', '-')}")
    if option.value is None:
        return f"{flag} {_ENTRIES[option.name]}" if option.name in _ENTRIES else flag
    if isinstance(option.value, bool):
        return flag if option.value else _SWITCHED_OFF[option.name]
    value = "=".join(option.value) if isinstance(option.value, tuple) else str(option.value)
    return f"{flag} {shlex.quote(value)}"


def set_up_logging(quiet: bool) -> None:
    """Show the library's log as plain lines on stderr; with ``quiet``, errors only."""
    logger = logging.getLogger("ptad")
    tear_down_logging()
    logger.addHandler(_StderrLines())
    logger.setLevel(logging.ERROR if quiet else logging.INFO)


def tear_down_logging() -> None:
    """Undo :func:`set_up_logging`."""
    logger = logging.getLogger("ptad")
    logger.handlers = [h for h in logger.handlers if not isinstance(h, _StderrLines)]
    logger.setLevel(logging.NOTSET)


class _StderrLines(logging.Handler):
    # typer.echo looks up sys.stderr for every line: a progress bar replaces it while it is shown
    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = record.msg.phrase(on_command_line) if isinstance(record.msg, Message) else record.getMessage()
        typer.echo(level + text, err=True)


def print_json(content: Any, *, err: bool = False) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str), err=err)


def print_error(kind: str, message: str | Message, *, as_json: bool, **more: str) -> None:
    """Print an error on stderr, as one line or as JSON."""
    message = message.phrase(on_command_line) if isinstance(message, Message) else message
    if as_json:
        typer.echo(json.dumps({"error": {"type": kind, "message": message, **more}}, ensure_ascii=False), err=True)
    else:
        typer.echo(f"error: {message}", err=True)


@contextmanager
def rows_progress(task: str, quiet: bool) -> Iterator[Progress | None]:
    """Show a bar with rows per second and time left, on a terminal only."""
    with shown_progress(0 if quiet or not on_terminal() else 1) as reporter:
        yield None if reporter is None else lambda done, total: reporter.stage(task, done, total or 0, "rows")


def terminal_text(value: Any) -> str:
    """Return a value as short text without control characters, which a terminal would execute."""
    if not isinstance(value, str):
        from ptad.report.numbers import value_text

        value = value_text(value, digits=4) or "missing"
    return "".join(c if c.isprintable() else "\ufffd" for c in value)


def rate(value: float | None) -> str:
    """Return a share in percent with three digits."""
    return "not defined" if value is None else f"{100 * value:.3g} %"


def plural(n: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many}"


def share(n: int, of: int, what: str) -> str:
    """Return ``n`` of ``of`` things, with a percentage unless they are few."""
    counts = f"{n:,} of {of:,} {what}"
    return "not defined" if not of else counts if of < MIN_FOR_PERCENT else f"{rate(n / of)} ({counts})"


def bad_cell_line(columns: dict[str, int], listed: Path | None) -> str:
    """Return how many cells could not be read, and where they are listed."""
    from ptad.tables.bad_cells import summary

    where = "--bad-cells FILE lists such cells" if listed is None else f"listed in {terminal_text(str(listed))}"
    return f"{terminal_text(summary(columns))}; {where}"


def print_pairs(pairs: list[tuple[str, str]], title: str | None = None) -> None:
    """Print names and values in two columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(name), Text(value))  # a column's name may look like markup
    console = Console(highlight=False)
    if title:
        console.print(title, style="bold", markup=False)
    console.print(grid)


def print_top_rows(entries: list[dict[str, Any]], places: Places | None = None) -> None:
    """Print rows with the columns that contribute most: reason, observed and expected value.

    Rows are numbered as in their file if their ``places`` are known, and counted from 0 otherwise. On a narrow terminal
    names and reasons are wrapped, values are cut, and numbers stay whole.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    labelled = any("label" in entry for entry in entries)
    for name in ("row", *(("label",) if labelled else ()), "score", "p-value"):
        table.add_column(name, justify="left" if name == "label" else "right", no_wrap=True)
    for name in ("column", "reason", "observed", "expected"):
        table.add_column(name, max_width=32)
    table.add_column("%", justify="right", no_wrap=True)
    for entry in entries:
        if table.row_count:
            table.add_row()
        head = _row_head(entry, places)
        for reason in entry["columns"]:
            # nothing is ever expected to be missing: None is a text that never occurred in training
            expected = "other text" if reason["expected"] is None else terminal_text(reason["expected"])
            names = [Text(terminal_text(reason["column"])), Text(terminal_text(reason["reason"] or ""))]
            values = [Text(v, no_wrap=True, overflow="ellipsis") for v in (terminal_text(reason["observed"]), expected)]
            percentage = "<1" if 0.0 < reason["percentage"] < 0.5 else f"{reason['percentage']:.0f}"
            table.add_row(*head, *names, *values, percentage)
            head = [Text("")] * len(head)
    Console(highlight=False).print(table)


def _row_head(entry: dict[str, Any], places: Places | None) -> list[Any]:
    """Return number, label (if known), score and p-value of a row."""
    from rich.text import Text

    number = str(entry["row"])
    if places is not None:
        place = places.of(entry["row"])
        number = f"{place.number}" if place.file is None else f"{terminal_text(Path(place.file).name)}: {place.number}"
    style = "bold red" if entry["anomaly"] else ""
    p_value = "" if entry["p_value"] is None else f"{entry['p_value']:.3g}"
    label = [Text(entry["label"])] if "label" in entry else []
    return [Text(number), *label, Text(f"{entry['score']:.4g}", style=style), Text(p_value, style=style)]
