"""``ptad report``: one self-contained page about a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json

EXAMPLES = """
ptad report model new.csv --out report.html
ptad report model new.parquet --no-rows --false-alarm-rate 0.001
ptad report model labelled.csv --label status --normal ok --top 100 --time received
"""


@options.with_job
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
    job: options.Job = options.AS_IT_IS,
) -> None:
    """Write a page that a browser opens without any network: the anomalies, why they are, and drift."""
    from ptad.report import ReportSettings, write_report

    with job.scoring() as settings:
        rate = settings.pop("false_alarm_rate")
        wanted = ReportSettings(top, rows, label, tuple(normal or ()), rate, title, time)
        content = write_report(model, job.source(table), out, wanted, **settings)
    if job.as_json:
        print_json(content)
    else:
        for note in content["notes"]:
            job.say(f"note: {note['text']}")
        noun = "row" if content["n_rows"] == 1 else "rows"
        job.say(f"{content['n_flagged']:,} of {content['n_rows']:,} {noun} flagged; report in {out}")
    job.say_bad_cells(dict(content["bad"]["columns"]))
