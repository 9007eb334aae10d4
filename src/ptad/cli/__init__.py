"""The command line: one file per command, no logic."""

from __future__ import annotations

from typing import Annotated

import typer

from ptad._version import __version__
from ptad.cli import benchmark, demo, evaluate, explain, export, fit, info, report, score, serve, update
from ptad.cli.commands import Commands

app = typer.Typer(
    name="ptad",
    cls=Commands,
    help="One-class anomaly detection for tables: fit on normal rows, find the anomalies, say why.",
    epilog="A first look: [bold]ptad demo[/bold]. Every command has examples: ptad COMMAND --help.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"ptad {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _flowing(text: str) -> str:
    """Return the paragraphs of a docstring in one line each: the width of the terminal breaks them."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _examples(lines: str) -> str:
    """Return the examples at the end of a command's help, one per paragraph."""
    return "\n\n".join(["[bold]Examples[/bold]", *lines.strip().splitlines()])


for _command, _lines in (
    (fit.fit, fit.EXAMPLES),
    (update.update, update.UPDATE_EXAMPLES),
    (update.recalibrate, update.RECALIBRATE_EXAMPLES),
    (score.score, score.EXAMPLES),
    (explain.explain, explain.EXAMPLES),
    (evaluate.evaluate, evaluate.EXAMPLES),
    (report.report, report.EXAMPLES),
    (info.info, info.EXAMPLES),
    (export.export, export.EXAMPLES),
    (serve.serve, serve.EXAMPLES),
    (demo.demo, demo.EXAMPLES),
):
    app.command(help=_flowing(_command.__doc__ or ""), epilog=_examples(_lines))(_command)
app.add_typer(benchmark.app)


def main() -> None:
    """Entry point of the console script."""
    app()
