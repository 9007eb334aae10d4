"""``ptad report``: one self-contained page about a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import plural, print_json

EXAMPLES = """
ptad report model new.csv --out report.html
ptad report model new.parquet --no-rows --false-alarm-rate 0.001
ptad report model labelled.csv --label status --normal ok --top 100 --time received
"""


@options.with_job_options
def report(
    model: options.Model,
    table: options.Table,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    top: Annotated[int, typer.Option(help="How many rows with the highest scores to show, at most 1000.")] = 50,
    rows: Annotated[bool, typer.Option("--rows/--no-rows", help="Whether values of the table may be shown.")] = True,
    label: options.Label = None,
    normal: options.Normal = None,
    time: Annotated[
        str | None, typer.Option(help="The column with the time of a row, for scores over time.", metavar="COLUMN")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    job: options.Job = options.DEFAULT_JOB,
) -> None:
    """Write a page that a browser opens without any network: the anomalies, why they are, and drift."""
    from ptad.report import ReportSettings, write_report

    with job.scoring() as settings:
        rate = settings.pop("false_alarm_rate")
        report_settings = ReportSettings(top, rows, label, tuple(normal or ()), rate, title, time)
        content = write_report(model, job.source(table), out, report_settings, **settings)
    if job.as_json:
        print_json(content)
    else:
        for note in content["notes"]:
            job.note(f"note: {note['text']}")
        rows_scored = plural(content["n_rows"], "row", "rows")
        job.note(f"{content['n_flagged']:,} of {rows_scored} flagged; report in {out}")
    job.note_bad_cells(dict(content["bad"]["columns"]))
