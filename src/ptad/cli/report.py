"""``ptad report``: one self-contained page about a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import bad_cell_line, print_json, rows_progress, set_up_logging
from ptad.cli.reading import AS_IT_IS, Reading, with_reading

EXAMPLES = """
[bold]Examples[/bold]

ptad report model new.csv --out report.html

ptad report model new.parquet --no-rows --false-alarm-rate 0.001

ptad report model labelled.csv --label status --normal ok --top 100 --time received
"""


@with_reading
def report(
    model: options.Model,
    table: options.Table,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    top: Annotated[
        int, typer.Option("--top", help="How many rows with the highest scores to show, at most 1000.")
    ] = 50,
    rows: Annotated[bool, typer.Option("--rows/--no-rows", help="Whether values of the table may be shown.")] = True,
    label: options.Label = None,
    normal: options.Normal = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="The column with the time of a row, for scores over time.", metavar="COLUMN"),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    false_alarm_rate: options.Rate = None,
    device: options.Device = "auto",
    reading: Reading = AS_IT_IS,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write a page that a browser opens without any network: the anomalies, why they are, and drift."""
    from ptad.cli.settings import parse_rate
    from ptad.report import ReportSettings, write_report

    set_up_logging(quiet)
    settings = ReportSettings(top, rows, label, tuple(normal or ()), parse_rate(false_alarm_rate), title, time)
    with rows_progress("scoring", quiet) as progress:
        source = reading.source(table)
        content = write_report(model, source, out, settings, device=device, progress=progress, **reading.job)
    if as_json:
        print_json(content)
    elif not quiet:
        for note in content["notes"]:
            typer.echo(f"note: {note['text']}", err=True)
        n_flagged, n_rows = content["n_flagged"], content["n_rows"]
        noun = "row" if n_rows == 1 else "rows"
        typer.echo(f"{n_flagged:,} of {n_rows:,} {noun} flagged; report in {out}", err=True)
    if content["bad"]["cells"] and not quiet:
        typer.echo(bad_cell_line(dict(content["bad"]["columns"]), reading.bad_cells), err=True)
