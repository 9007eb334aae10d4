"""Arguments and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ptad.cli.console import bad_cell_line, rows_progress, set_up_logging
from ptad.errors import SettingError
from ptad.jobs import Progress

_TABLE = (
    "A file (CSV, TSV, Parquet, Feather, JSON lines, also compressed; Excel, .ods), a folder or a quoted glob of them, "
    "or - for standard input."
)
_QUERY = f"{_TABLE} With --query the rows come from a database instead."

Model = Annotated[Path, typer.Argument(help="A model folder made by 'ptad fit'.", show_default=False)]
Table = Annotated[str, typer.Argument(help=_TABLE, show_default=False)]
OptionalTable = Annotated[str | None, typer.Argument(help=_QUERY, show_default=False)]
Db = Annotated[
    str | None,
    typer.Option(
        envvar="PTAD_DB",
        help="A database: sqlite:///FILE, duckdb:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
        metavar="URI",
    ),
]
QueryText = Annotated[
    str | None, typer.Option(help="A SELECT that gives the rows, in the database --db.", metavar="SQL")
]
Engine = Annotated[str, typer.Option(help="local, or ray for a cluster.")]
Address = Annotated[
    str | None, typer.Option(help="Head of a Ray cluster; without it one is started here.", metavar="HOST:PORT")
]
Workers = Annotated[int | None, typer.Option(help="Number of workers; by default all of the cluster.")]
Device = Annotated[str | None, typer.Option(help="auto (default), cpu, cuda, cuda:1, ...")]
Label = Annotated[str | None, typer.Option(help="The label column.", metavar="COLUMN")]
Normal = Annotated[
    list[str] | None, typer.Option(help="Label value of normal rows (may be repeated).", metavar="VALUE")
]
MaxRows = Annotated[int, typer.Option(help="Take at most this many rows, a uniform sample of the table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result, and errors, as JSON.")]


@dataclass(frozen=True)
class Job:
    """The options of every command with a table; :func:`with_job_options` adds each field to a command as an option."""

    false_alarm_rate: Annotated[
        str | None,
        typer.Option(
            help="Target: share of normal rows that may be flagged, such as 0.01, or auto. By default that of the "
            "model; in a fit auto: 0.01, or what the rows support.",
            metavar="RATE",
        ),
    ] = None
    device: Device = None
    encoding: Annotated[str, typer.Option(help="Encoding of text files, such as latin-1.")] = "utf-8"
    sheet: Annotated[
        str | None, typer.Option(help="Sheet of a workbook, by name or by number from 1.", metavar="NAME|NUMBER")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of numbers in text, . or ,; found from the table.", metavar="SIGN")
    ] = None
    thousands: Annotated[
        str | None, typer.Option(help="Thousands sign of numbers in text; found from the table.", metavar="SIGN")
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="Text that means missing, besides empty cells, NA, n/a and the like (may be repeated).",
            metavar="TEXT",
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a cell that cannot be read; otherwise it counts as missing.")
    ] = False
    bad_cells: Annotated[
        Path | None, typer.Option(help="CSV file that lists the cells that cannot be read.", metavar="FILE")
    ] = None
    quiet: Quiet = False
    as_json: Json = False

    def source(self, table: str | None, db: str | None = None, query: str | None = None) -> Any:
        """Return the source of the rows, a file or a query on a database, and how they are read."""
        from ptad.tables import Query, TableSource

        if (table is None) == (query is None):
            raise SettingError("Give either a TABLE or --query with --db, to say where the rows come from.")
        if query is None:
            return TableSource(table, self.sheet, self.decimal, self.thousands)
        if db is None:
            raise SettingError("--query needs a database. Name it with --db or in the variable PTAD_DB.")
        if self.sheet is not None:
            raise SettingError("--sheet is for workbooks, not for a database. Leave it out.")
        return TableSource(Query(db, query), None, self.decimal, self.thousands)

    @property
    def options(self) -> dict[str, Any]:
        """The other options, as arguments of the functions of :mod:`ptad.jobs`."""
        from ptad.cli.settings import parse_rate

        return {
            "false_alarm_rate": parse_rate(self.false_alarm_rate),
            "device": self.device or "auto",
            "encoding": self.encoding,
            "missing": self.missing or (),
            "strict": self.strict,
            "bad_cells": self.bad_cells,
        }

    @contextmanager
    def scoring(self) -> Iterator[dict[str, Any]]:
        """Yield the options of a job that scores, and show its progress."""
        with rows_progress("scoring", self.quiet) as progress:
            yield {**self.options, "progress": progress}

    def reading(self) -> AbstractContextManager[Progress | None]:
        """Show how many rows are read."""
        return rows_progress("reading", self.quiet)

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        if not self.quiet:
            typer.echo(text, err=True)

    def note_bad_cells(self, columns: dict[str, int]) -> None:
        """Print how many cells of which columns could not be read, if any."""
        if columns:
            self.note(bad_cell_line(columns, self.bad_cells))


DEFAULT_JOB = Job()


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``job`` of a command by the options of :class:`Job`, and set up logging."""
    hints = get_type_hints(Job, include_extras=True)
    shared = [p.replace(annotation=hints[p.name]) for p in inspect.signature(Job).parameters.values()]
    specific = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "job"]
    parameters = specific + shared

    @wraps(command)
    def run(**arguments: Any) -> None:
        job = Job(**{p.name: arguments.pop(p.name) for p in shared})
        set_up_logging(job.quiet)
        command(job=job, **arguments)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
