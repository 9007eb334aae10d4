"""``ptad score``: scores for every row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptad.cli import options
from ptad.cli.console import bad_cell_line, plural, print_json, rate, terminal_text

if TYPE_CHECKING:
    from ptad.jobs.score import ScoreSummary

MOST_COLUMNS = 10

EXAMPLES = """
ptad score model new.csv --out scored.csv
ptad score model 'days/*.parquet' --out scored.parquet --explain 3
cat new.csv | ptad score model - --only-scores > scores.csv
ptad score model --db postgresql://me@host/shop --query 'SELECT * FROM orders' --into scored_orders
ptad score model 'days/*.parquet' --engine ray --address 10.0.0.1:6379 --out scored
A run that was killed resumes when the same command is given again.
"""


@options.with_job_options
def score(
    model: options.Model,
    table: options.OptionalTable = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Output file (a folder with --engine ray); without it, CSV on standard output."
        ),
    ] = None,
    db: options.Db = None,
    query: options.QueryText = None,
    into: Annotated[
        str | None, typer.Option(help="Write a new table of the database --db instead.", metavar="TABLE")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Let --into replace an existing table.")] = False,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
    explain: Annotated[
        int,
        typer.Option(
            help="Name this many columns that contribute most, with reason, expected value and percentage.", metavar="N"
        ),
    ] = 0,
    append: Annotated[
        bool, typer.Option("--append/--only-scores", help="Write the table's own columns too, or the new ones only.")
    ] = True,
    prefix: Annotated[str, typer.Option(help="Put before the names of the new columns.")] = "",
    batch_rows: Annotated[int | None, typer.Option(min=1, help="Rows scored and kept at a time.", hidden=True)] = None,
    job: options.Job = options.DEFAULT_JOB,
) -> None:
    """Add the columns score, p_value and anomaly to a table of any size."""
    from ptad.cli.settings import check_output, on_cluster

    source, cluster = job.source(table, db, query), on_cluster(engine, address, workers)
    check_output(out, db, into, cluster)
    columns = {"explain": explain, "append": append, "prefix": prefix, "batch_rows": batch_rows}
    with job.scoring() as settings:
        settings |= columns
        if into is not None:
            from ptad.jobs.database import score_into

            summary = score_into(model, source, str(db), into, replace=replace, **settings)
        elif cluster:
            from ptad.jobs.ray.scoring import score_on_cluster

            summary = score_on_cluster(model, source, str(out), address=address, workers=workers, **settings)
        else:
            from ptad.jobs.score import score_table

            summary = score_table(model, source, "-" if out is None else out, **settings)
    rows_on_stdout = out is None and into is None
    if job.as_json:
        print_json(summary.to_json(), err=rows_on_stdout)  # standard output belongs to the rows
    else:
        for line in score_lines(summary, None if rows_on_stdout else summary.out, job.bad_cells):
            job.note(line)


def score_lines(summary: ScoreSummary, out: str | None, listed: Path | None = None) -> list[str]:
    """Return how many rows were scored and flagged, and how many have missing, unseen or bad cells."""
    from ptad.jobs.training_table import WARNING

    resumed = f" ({summary.rows_resumed:,} from an interrupted run)" if summary.rows_resumed else ""
    anomalies = "no threshold"
    if summary.anomalies is not None:
        target = f" at a false-alarm rate of {rate(summary.false_alarm_rate)}"
        anomalies = f"{summary.anomalies:,} flagged{target}"
    where = "" if out is None else f"; written to {terminal_text(out)}"
    cells, lines = summary.cells, [f"{plural(summary.rows, 'row', 'rows')}{resumed}, {anomalies}{where}"]
    for what, n_rows, columns in (
        ("missing values", cells.rows_missing, cells.missing_columns),
        ("unseen categories", cells.rows_unseen, cells.unseen_columns),
    ):
        if n_rows:
            lines.append(f"{plural(n_rows, 'row', 'rows')} with {what}: {_columns(columns, summary.rows)}")
    if cells.bad_columns:
        lines.append(bad_cell_line(cells.bad_columns, listed))
    if summary.training_table:
        lines.append(f"warning: {WARNING}")
    return lines


def _columns(counts: dict[str, int], n_rows: int) -> str:
    """Return the first columns with the number of their rows."""
    shown = [
        f"{terminal_text(name)} ({'all rows' if n == n_rows > 1 else f'{n:,}'})"
        for name, n in list(counts.items())[:MOST_COLUMNS]
    ]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {plural(more, 'more column', 'more columns')}" if more else "")
