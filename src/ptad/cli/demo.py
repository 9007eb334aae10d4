"""``ptad demo``: a first look at ptad."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, print_top_rows, set_up_logging
from ptad.cli.evaluate import evaluation_lines

EXAMPLES = """
ptad demo
ptad demo --seed 1 --json
"""


def demo(
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Chooses the half of the benign rows to fit on.")
    ] = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit on benign tumours, then find the malignant ones (scikit-learn's breast cancer table)."""
    from ptad.jobs.demo import run_demo

    set_up_logging(quiet)
    if not (quiet or as_json):
        typer.echo("Fitting on half of the benign rows of scikit-learn's breast cancer table ...", err=True)
    found = run_demo(seed=seed, verbose=0 if quiet else 1)
    if as_json:
        print_json(asdict(found))
        return
    training = ("training rows", f"{found.training_rows} benign rows, {found.n_columns} columns")
    others = evaluation_lines(found.evaluation)[1:]
    new = f"{found.evaluation.rows} rows: {found.evaluation.normal_rows} benign, {found.evaluation.anomalies} malignant"
    print_pairs([training, ("scored", new), *others])
    typer.echo("\nThe rows with the highest scores, and the columns that contribute most")
    print_top_rows(found.top_rows)
