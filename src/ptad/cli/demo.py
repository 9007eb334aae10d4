"""``ptad demo``: a first look at ptad."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, print_strangest, set_up_logging
from ptad.cli.evaluate import evaluation_lines

EXAMPLES = """
[bold]Examples[/bold]

ptad demo

ptad demo --seed 1 --json
"""


def demo(
    seed: Annotated[int, typer.Option("--seed", help="Which half of the benign rows is learned from.")] = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn from benign tumours, then find the malignant ones (scikit-learn's breast cancer table)."""
    from ptad.engines.demo import run_demo

    set_up_logging(quiet)
    if not (quiet or as_json):
        typer.echo("Learning from half of the benign rows of scikit-learn's breast cancer table ...", err=True)
    found = run_demo(seed=seed, verbose=0 if quiet else 1)
    if as_json:
        print_json(asdict(found))
        return
    learned = ("learned from", f"{found.trained_rows} benign rows, {found.n_columns} columns")
    others = evaluation_lines(found.evaluation)[1:]
    new = f"{found.evaluation.rows} rows: {found.evaluation.normal_rows} benign, {found.evaluation.anomalies} malignant"
    print_pairs([learned, ("judged", new), *others])
    typer.echo("\nThe strangest new rows, and the columns that make them strange")
    print_strangest(found.strangest)
