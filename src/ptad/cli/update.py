"""``ptad update`` and ``ptad recalibrate``: new normal rows for a saved model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, terminal_text
from ptad.cli.fit import fit_lines

UPDATE_EXAMPLES = """
ptad update model july.csv --out model-july
ptad update model log.parquet --label status --normal ok
ptad update model --db sqlite:///shop.db --query 'SELECT * FROM orders WHERE checked'
"""
RECALIBRATE_EXAMPLES = """
ptad recalibrate model july.csv
ptad recalibrate model log.parquet --label status --normal ok --out model-july
ptad recalibrate model july.csv --false-alarm-rate 0.005
"""


def _command(change: Literal["update", "recalibrate"], help_: str) -> Callable[..., None]:
    """Return a command that changes a model with new normal rows and saves it."""

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
        max_rows: options.MaxRows = 1_000_000,
        job: options.Job = options.DEFAULT_JOB,
    ) -> None:
        from ptad.jobs.fit import renew_table

        summary = renew_table(
            change,
            model,
            job.source(table, db, query),
            model if out is None else out,
            label=label,
            normal=normal or (),
            max_rows=max_rows,
            verbose=0 if job.quiet else 1,
            reading=job.reading,
            **job.options,
        )
        if job.as_json:
            print_json(summary)
        elif not job.quiet:
            lines = fit_lines(summary, label, "new rows", job.bad_cells)
            print_pairs(lines, f"{change.capitalize()}d model saved in {terminal_text(summary['model'])}")

    command.__name__ = change
    command.__doc__ = (
        f"{help_}\n\nRows that are too few for the false-alarm rate are refused, and the model is unchanged."
    )
    return options.with_job_options(command)


update = _command(
    "update", "Update a model with new normal rows: half of them join its reference rows, half give its threshold."
)
recalibrate = _command(
    "recalibrate", "Take the threshold and the p-values from normal rows that the model was not fitted on."
)
