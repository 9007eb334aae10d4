"""What the commands share on the screen: errors, logs, progress and tables.

Data go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ptad.errors import Message, Option
from ptad.progress import on_terminal, shown_progress

if TYPE_CHECKING:
    from ptad.tables.places import Places

FEW = 20  # fewer things than this are counted, not put in percent
ReportRows = Callable[[int, int | None], None]
# options that are called otherwise than their parameters, and what an entry of a mapping looks like
_FLAGS = {"types": "--type", "config": "--set", "random_state": "--seed"}
_ENTRIES = {"types": "COLUMN=TYPE", "config": "GROUP.SETTING=VALUE"}
_SWITCHED_OFF = {"append": "--only-scores"}


def on_command_line(option: Option) -> str:
    """Return an option as a command takes it: ``--type day=date``, ``--false-alarm-rate 0.01``."""
    flag = _FLAGS.get(option.name, f"--{option.name.replace('_', '-')}")
    if option.value is None:
        return f"{flag} {_ENTRIES[option.name]}" if option.name in _ENTRIES else flag
    if isinstance(option.value, bool):
        return flag if option.value else _SWITCHED_OFF[option.name]
    value = "=".join(option.value) if isinstance(option.value, tuple) else str(option.value)
    return f"{flag} {shlex.quote(value)}"


def set_up_logging(quiet: bool) -> None:
    """Show the library's log as plain lines on stderr; ``quiet`` leaves only errors."""
    logger = logging.getLogger("ptad")
    tear_down_logging()
    logger.addHandler(_StderrLines())
    logger.setLevel(logging.ERROR if quiet else logging.INFO)


def tear_down_logging() -> None:
    """Leave the library's logger as it was found."""
    logger = logging.getLogger("ptad")
    logger.handlers = [h for h in logger.handlers if not isinstance(h, _StderrLines)]
    logger.setLevel(logging.NOTSET)


class _StderrLines(logging.Handler):
    # sys.stderr is looked up for every line: a progress bar puts its own in place while it is shown
    def emit(self, record: logging.LogRecord) -> None:
        lead = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = record.msg.phrase(on_command_line) if isinstance(record.msg, Message) else record.getMessage()
        typer.echo(lead + text, err=True)


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
def rows_progress(task: str, quiet: bool) -> Iterator[ReportRows | None]:
    """A bar with rows per second and time left, on a terminal only."""
    with shown_progress(0 if quiet or not on_terminal() else 1) as reporter:
        yield None if reporter is None else lambda done, total: reporter.stage(task, done, total or 0, "rows")


def safe(value: Any) -> str:
    """A cell as a person reads it: numbers short, nothing that a terminal would obey."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return "".join(c if c.isprintable() else "\ufffd" for c in str(value))


def rate(value: float | None) -> str:
    """A share in percent, with as many digits as it needs."""
    return "not defined" if value is None else f"{100 * value:.3g} %"


def plural(n: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{n:,} {one if n == 1 else many}"


def share(n: int, of: int, what: str) -> str:
    """A share of a number of things: in percent only where there are enough of them for one."""
    counts = f"{n:,} of {of:,} {what}"
    return "not defined" if not of else counts if of < FEW else f"{rate(n / of)} ({counts})"


def bad_cell_line(columns: dict[str, int], listed: Path | None) -> str:
    """How many cells could not be read, and where they are listed."""
    from ptad.tables.bad_cells import summary

    where = "--bad-cells FILE lists such cells" if listed is None else f"listed in {safe(listed)}"
    return f"{safe(summary(columns))}; {where}"


def figure(value: float | None) -> str:
    """A figure with four digits."""
    return "not defined" if value is None else f"{value:.4f}"


def print_pairs(pairs: list[tuple[str, str]], title: str | None = None, *, err: bool = False) -> None:
    """Print names and values in two columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(name), Text(value))  # a column's name may look like markup
    console = Console(stderr=err, highlight=False)
    if title:
        console.print(title, style="bold", markup=False)
    console.print(grid)


def print_top_rows(entries: list[dict[str, Any]], places: Places | None = None) -> None:
    """Print rows with the columns that contribute most: why, observed and expected.

    Rows are numbered as in their file if their ``places`` are known, and counted from 0 otherwise.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    labelled = any("label" in entry for entry in entries)
    numbers = ("row", *(("truth",) if labelled else ()), "score", "p-value")
    heads = [_head(entry, labelled, places) for entry in entries]
    taken = sum(max(len(name), *(len(head[i]) for head in heads), 0) + 2 for i, name in enumerate(numbers))
    for name in numbers:
        table.add_column(name, justify="left" if name == "truth" else "right", no_wrap=True)
    cells = [[_said(said) for said in entry["columns"]] for entry in entries]
    room = console.width - taken - len("100") - 4 * 2
    names = ("column", "reason", "observed", "expected")
    wanted = {n: max(len(n), *(len(line[i]) for lines in cells for line in lines), 0) for i, n in enumerate(names)}
    for name, width in _fitted(wanted, room).items():
        table.add_column(name, max_width=width)
    table.add_column("%", justify="right", no_wrap=True)
    for entry, head, lines in zip(entries, heads, cells, strict=True):
        if table.row_count:
            table.add_row()
        for said, line in zip(entry["columns"], lines, strict=True):
            # names and reasons may take a second line; values of any length may not
            values = [Text(text, no_wrap=True, overflow="ellipsis") for text in line[2:]]
            table.add_row(*head, *map(Text, line[:2]), *values, Text(f"{said['percentage']:.0f}"))
            head = [Text("")] * len(head)
    console.print(table)


def _said(said: dict[str, Any]) -> list[str]:
    # nothing is ever expected to be missing: None is a text that never occurred in training
    expected = "a new value" if said["expected"] is None else safe(said["expected"])
    return [safe(said["column"]), safe(said["reason"] or ""), safe(said["observed"]), expected]


def _fitted(wanted: dict[str, int], room: int) -> dict[str, int]:
    """The widths of columns on a terminal: the widest gives way first, and numbers beside them stay whole."""
    widths = {name: min(width, 32) for name, width in wanted.items()}
    while sum(widths.values()) > max(room, 8 * len(widths)):
        widths[max(widths, key=lambda name: widths[name])] -= 1
    return widths


def _head(entry: dict[str, Any], labelled: bool, places: Places | None) -> list[Any]:
    from rich.text import Text

    number = str(entry["row"])
    if places is not None:
        place = places.of(entry["row"])
        number = f"{place.number}" if place.file is None else f"{safe(Path(place.file).name)}: {place.number}"
    style = "bold red" if entry["anomaly"] else ""
    p_value = "" if entry["p_value"] is None else f"{entry['p_value']:.3g}"
    head = [Text(number), Text(f"{entry['score']:.4g}", style=style), Text(p_value, style=style)]
    return [head[0], Text(entry["label"]), *head[1:]] if labelled else head
