"""``ptad demo``: a first look at ptad."""

from __future__ import annotations

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
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Chooses the half of the benign rows to fit on.")] = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit on benign tumours, then find the malignant ones (scikit-learn's breast cancer table)."""
    from ptad.jobs.demo import run_demo

    set_up_logging(quiet)
    if not (quiet or as_json):
        typer.echo("Fitting on half of the benign rows of scikit-learn's breast cancer table ...", err=True)
    result = run_demo(seed=seed, verbose=0 if quiet else 1)
    if as_json:
        print_json({**result._asdict(), "evaluation": result.evaluation.to_json()})
        return
    training = ("training rows", f"{result.training_rows} benign rows, {result.n_columns} columns")
    others = evaluation_lines(result.evaluation)[1:]
    new = result.evaluation
    scored = ("scored", f"{new.rows} rows: {new.normal_rows} benign, {new.anomalies} malignant")
    print_pairs([training, scored, *others])
    typer.echo("\nThe rows with the highest scores, and the columns that contribute most")
    print_top_rows(result.top_rows)
