"""``ptad update`` and ``ptad recalibrate``: further normal rows for a model that is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, rows_progress, safe, set_up_logging
from ptad.cli.fit import summary_lines
from ptad.cli.reading import AS_IT_IS, Reading, with_reading

UPDATE_EXAMPLES = """
[bold]Examples[/bold]

ptad update model july.csv --out model-july

ptad update model log.parquet --label status --normal ok

ptad update model --db sqlite:///shop.db --query 'SELECT * FROM orders WHERE checked'
"""
RECALIBRATE_EXAMPLES = """
[bold]Examples[/bold]

ptad recalibrate model july.csv

ptad recalibrate model log.parquet --label status --normal ok --out model-july

ptad recalibrate model july.csv --false-alarm-rate 0.005
"""


def _renewal(job: str, done: str, help_: str) -> Callable[..., None]:
    """Return a command that saves a model after a job with new normal rows; ``done`` says what became of it."""

    @with_reading
    def command(
        model: options.Model,
        table: options.OptionalTable = None,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for the model; without it, the model itself is changed."),
        ] = None,
        db: options.Db = None,
        query: options.QueryText = None,
        label: options.Label = None,
        normal: options.Normal = None,
        false_alarm_rate: options.Rate = None,
        device: options.Device = "auto",
        max_rows: Annotated[
            int, typer.Option("--max-rows", help="Take at most this many rows, a uniform sample of the table.")
        ] = 1_000_000,
        reading: Reading = AS_IT_IS,
        quiet: options.Quiet = False,
        as_json: options.Json = False,
    ) -> None:
        from ptad.cli.settings import parse_rate
        from ptad.jobs import fit

        set_up_logging(quiet)
        summary = getattr(fit, job)(
            model,
            reading.source(table, db, query),
            model if out is None else out,
            label=label,
            normal=normal or (),
            false_alarm_rate=parse_rate(false_alarm_rate),
            max_rows=max_rows,
            device=device,
            verbose=0 if quiet else 1,
            reading=lambda: rows_progress("reading", quiet),
            **reading.job,
        )
        if as_json:
            print_json(summary)
        elif not quiet:
            lines = summary_lines(summary, label, "new rows", reading.bad_cells)
            print_pairs(lines, f"{done} model saved in {safe(summary['model'])}")

    command.__doc__ = (
        f"{help_}\n\nRows that are too few for the false-alarm rate are refused, and the model is unchanged."
    )
    return command


update = _renewal(
    "update_table",
    "Updated",
    "Let a model take in new normal rows: half of them join its reference rows, half give its threshold.",
)
recalibrate = _renewal(
    "recalibrate_table",
    "Recalibrated",
    "Take the threshold and the p-values from normal rows that the model was not fitted on.",
)
