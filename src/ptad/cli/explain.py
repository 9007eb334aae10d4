"""``ptad explain``: the rows with the highest scores, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_top_rows

EXAMPLES = """
ptad explain model new.csv
ptad explain model new.parquet --top 3 --columns 5
ptad explain model new.csv --json
"""


@options.with_job_options
def explain(
    model: options.Model,
    table: options.Table,
    top: Annotated[int, typer.Option(help="How many rows.")] = 10,
    columns: Annotated[int, typer.Option(help="How many columns of each row.")] = 3,
    job: options.Job = options.DEFAULT_JOB,
) -> None:
    """Show the rows with the highest scores, and the columns that contribute most.

    Rows are numbered as in their file: the header of a CSV file is row 1. In JSON, "row" is counted from 0 and "place"
    says where it is. Percentages are shares of a row's positive contributions. Flagged rows are red on a terminal.
    """
    from ptad.jobs.explain import explain_table

    with job.scoring() as settings:
        entries, places, bad_cells = explain_table(model, job.source(table), top=top, columns=columns, **settings)
    if job.as_json:
        print_json([{**entry, "place": str(places.of(entry["row"]))} for entry in entries])
    else:
        print_top_rows(entries, places)
    job.note_bad_cells(bad_cells)
