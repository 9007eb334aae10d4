"""The command line: one file per command, no logic."""

from __future__ import annotations

from typing import Annotated

import typer

from ptad._version import __version__
from ptad.cli import benchmark, demo, evaluate, explain, export, fit, info, renewal, report, score, serve
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


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ptad {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command("update", epilog=renewal.UPDATE_EXAMPLES)(renewal.update)
app.command("recalibrate", epilog=renewal.RECALIBRATE_EXAMPLES)(renewal.recalibrate)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=info.EXAMPLES)(info.info)
app.command(epilog=export.EXAMPLES)(export.export)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(benchmark.app)


def main() -> None:
    """Entry point of the console script."""
    app()
