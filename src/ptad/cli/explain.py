"""``ptad explain``: the rows with the highest scores, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import bad_cell_line, print_json, print_top_rows, rows_progress, set_up_logging
from ptad.cli.reading import AS_IT_IS, Reading, with_reading

EXAMPLES = """
[bold]Examples[/bold]

ptad explain model new.csv

ptad explain model new.parquet --top 3 --columns 5

ptad explain model new.csv --json
"""


@with_reading
def explain(
    model: options.Model,
    table: options.Table,
    top: Annotated[int, typer.Option("--top", help="How many rows.")] = 10,
    columns: Annotated[int, typer.Option("--columns", help="How many columns of each row.")] = 3,
    false_alarm_rate: options.Rate = None,
    device: options.Device = "auto",
    reading: Reading = AS_IT_IS,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Show the rows with the highest scores, and the columns that contribute most.

    Rows are numbered as in their file: the header of a CSV file is row 1. In JSON, "row" is counted from 0 and "place"
    says where it is. Percentages are shares of a row's positive contributions. Flagged rows are red on a terminal.
    """
    from ptad.cli.settings import parse_rate
    from ptad.jobs.batches import load_light
    from ptad.jobs.top_rows import top_rows

    set_up_logging(quiet)
    with rows_progress("scoring", quiet) as progress:
        loaded = load_light(
            model, device=device, false_alarm_rate=parse_rate(false_alarm_rate), missing=reading.missing or ()
        )
        found = top_rows(
            loaded,
            reading.source(table),
            top=top,
            columns=columns,
            encoding=reading.encoding,
            strict=reading.strict,
            bad_cells=reading.bad_cells,
            progress=progress,
        )
    if as_json:
        print_json([{**entry, "place": str(found.places.of(entry["row"]))} for entry in found.entries])
    else:
        print_top_rows(found.entries, found.places)
    if found.bad_cells and not quiet:
        typer.echo(bad_cell_line(found.bad_cells, reading.bad_cells), err=True)
