"""How a table is read: the options that every command with a table has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ptad.errors import SettingError


@dataclass(frozen=True)
class Reading:
    """What :func:`with_reading` asks for; every field is an option."""

    encoding: Annotated[str, typer.Option("--encoding", help="Encoding of text files, such as latin-1.")] = "utf-8"
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", help="Sheet of a workbook, by name or by number from 1.", metavar="NAME|NUMBER"),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            "--decimal", help="Decimal sign of numbers in text, . or ,; found from the table.", metavar="SIGN"
        ),
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option("--thousands", help="Thousands sign of numbers in text; found from the table.", metavar="SIGN"),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", help="Text that means missing (may be repeated), beside that of the model.", metavar="TEXT"
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a cell that cannot be read; otherwise it counts as missing.")
    ] = False
    bad_cells: Annotated[
        Path | None,
        typer.Option("--bad-cells", help="CSV file that lists the cells that cannot be read.", metavar="FILE"),
    ] = None

    def source(self, table: str | None, db: str | None = None, query: str | None = None) -> Any:
        """Return where the rows come from, a file or a query on a database, and how they are to be read."""
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
    def job(self) -> dict[str, Any]:
        """The rest, as the functions of :mod:`ptad.jobs` take it."""
        missing = self.missing or ()
        return {"encoding": self.encoding, "missing": missing, "strict": self.strict, "bad_cells": self.bad_cells}


AS_IT_IS = Reading()


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`Reading` in the place of its parameter ``reading``."""
    hints = get_type_hints(Reading, include_extras=True)
    shared = [p.replace(annotation=hints[p.name]) for p in inspect.signature(Reading).parameters.values()]
    parameters = []
    for own in inspect.signature(command, eval_str=True).parameters.values():
        parameters += shared if own.name == "reading" else [own]

    @wraps(command)
    def run(**given: Any) -> None:
        command(reading=Reading(**{p.name: given.pop(p.name) for p in shared}), **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
